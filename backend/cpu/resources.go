package cpu

import (
	"io/fs"
	"math"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// availableThreads returns the number of CPUs that the process may use at the
// same time: those of its affinity mask, as the Go runtime found it, no more
// than GOMAXPROCS, and no more than the CPU quota of its control groups.
func availableThreads(root fs.FS) int {
	n := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	// Rounded down: workers that share a fraction of a CPU wait for each other.
	if quota := cgroupQuota(root); quota < float64(n) {
		n = int(quota)
	}
	return max(n, 1)
}

// cgroupQuota returns the least CPU quota, in CPUs, of the control groups that
// the process is in and of those above them, +Inf if there is none. It reads
// the files of version 2 and of version 1 at their usual places.
func cgroupQuota(root fs.FS) float64 {
	membership, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return math.Inf(1)
	}
	quota := math.Inf(1)
	for line := range strings.Lines(string(membership)) {
		// hierarchy:controllers:path
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		var mount string
		var read func(fs.FS, string) float64
		switch {
		case parts[0] == "0" && parts[1] == "":
			mount, read = "sys/fs/cgroup", quotaV2
		case hasController(parts[1], "cpu"):
			mount, read = "sys/fs/cgroup/cpu", quotaV1
		default:
			continue
		}
		// In a container the path may be one of the host that is not visible
		// here; then the folders above it are what there is to read.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			quota = min(quota, read(root, path.Join(mount, dir)))
			if dir == "/" {
				break
			}
		}
	}
	return quota
}

func hasController(list, name string) bool {
	for c := range strings.SplitSeq(list, ",") {
		if c == name {
			return true
		}
	}
	return false
}

// quotaV2 reads cpu.max: "max 100000" or "quota period".
func quotaV2(root fs.FS, dir string) float64 {
	b, err := fs.ReadFile(root, path.Join(dir, "cpu.max"))
	if err != nil {
		return math.Inf(1)
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	return ratio(quota, period)
}

// quotaV1 reads cpu.cfs_quota_us, −1 if there is none, and cpu.cfs_period_us.
func quotaV1(root fs.FS, dir string) float64 {
	quota, err1 := fs.ReadFile(root, path.Join(dir, "cpu.cfs_quota_us"))
	period, err2 := fs.ReadFile(root, path.Join(dir, "cpu.cfs_period_us"))
	if err1 != nil || err2 != nil {
		return math.Inf(1)
	}
	return ratio(strings.TrimSpace(string(quota)), strings.TrimSpace(string(period)))
}

// systemMemory returns the memory of the machine in bytes, 0 if it is unknown.
func systemMemory(root fs.FS) int64 {
	info, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(info)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			if kib, err := strconv.ParseInt(fields[1], 10, 53); err == nil && kib > 0 {
				return kib << 10
			}
		}
	}
	return 0
}

// ratio returns quota/period, or +Inf where they are not both positive numbers.
func ratio(quota, period string) float64 {
	q, err1 := strconv.ParseUint(quota, 10, 63)
	p, err2 := strconv.ParseUint(period, 10, 63)
	if err1 != nil || err2 != nil || q == 0 || p == 0 {
		return math.Inf(1)
	}
	return float64(q) / float64(p)
}
