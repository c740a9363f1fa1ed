// Package host says what of the machine the process may use: processors and
// memory, within the limits of its control groups and of its own.
package host

import (
	"embed"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Threads returns the number of CPUs that the process may use at the same time:
// those of its affinity mask, as the Go runtime found it, no more than
// GOMAXPROCS, and no more than the CPU quota of its control groups, which is at
// most 0.1 s old.
func Threads() int { return threads(quota.get()) }

// Memory returns the bytes of memory that the process may use: the least of the
// memory of the machine, the limit of its control groups, and what its limit of
// address space (RLIMIT_AS, ulimit -v) leaves beside what it has already. 0
// means unknown. The answer is at most 0.1 s old.
func Memory() int64 { return bytes(most.get()) }

// Available returns the bytes of memory that are free for the process now: the
// least of what the machine can give without swapping, what the limits of its
// control groups leave, and its limit of address space. What the system can take
// back, such as files that it keeps in memory, counts as free. 0 means unknown. The
// answer is at most 0.1 s old.
func Available() int64 { return bytes(free.get()) }

// lately is an answer that takes a dozen files, and is found again when it is 0.1 s old: to open
// a small network takes no longer than that.
type lately struct {
	sync.Mutex
	find   func() float64
	at     time.Time
	answer float64
}

func (l *lately) get() float64 {
	l.Lock()
	defer l.Unlock()
	if now := time.Now(); l.at.IsZero() || now.Sub(l.at) > time.Second/10 {
		l.at, l.answer = now, l.find()
	}
	return l.answer
}

var (
	quota = lately{find: func() float64 { return cpuQuota(root()) }}
	most  = lately{find: func() float64 {
		total, _ := systemMemory()
		return min(memory(root()), total)
	}}
	free = lately{find: func() float64 {
		_, left := systemMemory()
		return min(available(root()), left)
	}}
)

// threads is Threads where control groups have a quota of CPUs.
func threads(quota float64) int {
	n := min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
	// Rounded down: workers that share a fraction of a CPU wait for each other.
	if quota < float64(n) {
		n = int(quota)
	}
	return max(n, 1)
}

func memory(root fs.FS) float64 {
	return min(physicalMemory(root), leastOfGroups(root, memoryLimits), addressSpace(root), addressable)
}

func available(root fs.FS) float64 {
	return min(freeMemory(root), leastOfGroups(root, memoryLeft), addressSpace(root), addressable)
}

// root has the files that tell of limits: none on Windows, where the root of whatever drive is
// the current one may have any.
func root() fs.FS {
	if runtime.GOOS == "windows" {
		return embed.FS{}
	}
	return os.DirFS("/")
}

// addressable is the most that the process can address. WebAssembly has pointers of 32 bits,
// whatever Go's have.
var addressable = func() float64 {
	if runtime.GOARCH == "wasm" || strconv.IntSize == 32 {
		return 1 << 32
	}
	return math.Inf(1)
}()

// bytes returns a number of bytes as an integer: 0 for +Inf, and never 0 otherwise.
func bytes(n float64) int64 {
	if n >= math.MaxInt64 {
		return 0
	}
	return max(int64(n), 1)
}

// cpuQuota returns the CPU quota of the control groups, in CPUs.
func cpuQuota(root fs.FS) float64 { return leastOfGroups(root, cpuQuotas) }

// groupLimit is a limit that control groups set. Both functions return +Inf for
// none.
type groupLimit struct {
	controller string // of version 1
	v2, v1     func(root fs.FS, dir string) float64
}

var (
	cpuQuotas    = groupLimit{"cpu", quotaV2, quotaV1}
	memoryLimits = groupLimit{"memory", memoryV2, memoryV1}
	memoryLeft   = groupLimit{"memory", leftV2, leftV1}
)

// leastOfGroups returns the least limit of the control groups that the process is
// in and of those above them, +Inf if there is none. It reads the files of
// version 2 and of version 1 at their usual places.
func leastOfGroups(root fs.FS, l groupLimit) float64 {
	membership, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return math.Inf(1)
	}
	least := math.Inf(1)
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
			mount, read = "sys/fs/cgroup", l.v2
		case hasController(parts[1], l.controller):
			mount, read = "sys/fs/cgroup/"+l.controller, l.v1
		default:
			continue
		}
		// In a container the path may be one of the host that is not visible
		// here; then the folders above it are what there is to read.
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			least = min(least, read(root, path.Join(mount, dir)))
			if dir == "/" {
				break
			}
		}
	}
	return least
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
	quota, period, _ := strings.Cut(word(root, dir, "cpu.max"), " ")
	return ratio(quota, period)
}

// quotaV1 reads cpu.cfs_quota_us, −1 if there is none, and cpu.cfs_period_us.
func quotaV1(root fs.FS, dir string) float64 {
	return ratio(word(root, dir, "cpu.cfs_quota_us"), word(root, dir, "cpu.cfs_period_us"))
}

// memoryV2 reads memory.max: bytes, or "max".
func memoryV2(root fs.FS, dir string) float64 { return ratio(word(root, dir, "memory.max"), "1") }

// memoryV1 reads memory.limit_in_bytes: bytes, 2^63 or nearly so for no limit.
func memoryV1(root fs.FS, dir string) float64 {
	return ratio(word(root, dir, "memory.limit_in_bytes"), "1")
}

// leftV2 is memory.max without what is in use, of which files that are kept in
// memory, and have not been read lately, can be taken back.
func leftV2(root fs.FS, dir string) float64 {
	return left(root, dir, memoryV2(root, dir), "memory.current", "inactive_file")
}

// leftV1 is the same of version 1.
func leftV1(root fs.FS, dir string) float64 {
	return left(root, dir, memoryV1(root, dir), "memory.usage_in_bytes", "total_inactive_file")
}

func left(root fs.FS, dir string, limit float64, usage, reclaimable string) float64 {
	used, err := strconv.ParseUint(word(root, dir, usage), 10, 63)
	if math.IsInf(limit, 1) || err != nil {
		return limit
	}
	for line := range strings.Lines(word(root, dir, "memory.stat")) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == reclaimable {
			if n, err := strconv.ParseUint(fields[1], 10, 63); err == nil {
				used -= min(n, used)
			}
		}
	}
	return max(limit-float64(used), 0)
}

// word returns what a file holds, without the end of its last line, nothing where it cannot be read.
func word(root fs.FS, dir, name string) string {
	b, err := fs.ReadFile(root, path.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// physicalMemory returns the memory of the machine, +Inf if it is unknown.
func physicalMemory(root fs.FS) float64 { return kibibytes(root, "proc/meminfo", "MemTotal:") }

// freeMemory returns the memory that the machine can give, +Inf if it is unknown.
func freeMemory(root fs.FS) float64 { return kibibytes(root, "proc/meminfo", "MemAvailable:") }

// addressSpace returns the bytes of address space that are left to the process,
// +Inf where they are not limited.
func addressSpace(root fs.FS) float64 {
	limits, err := fs.ReadFile(root, "proc/self/limits")
	if err != nil {
		return math.Inf(1)
	}
	for line := range strings.Lines(string(limits)) {
		if rest, ok := strings.CutPrefix(line, "Max address space"); ok {
			fields := strings.Fields(rest) // soft, hard, unit
			if len(fields) == 0 {
				break
			}
			limit := ratio(fields[0], "1")
			if used := kibibytes(root, "proc/self/status", "VmSize:"); !math.IsInf(used, 1) {
				limit = max(limit-used, 0)
			}
			return limit
		}
	}
	return math.Inf(1)
}

// kibibytes reads a line "name 123 kB" of a file, in bytes; +Inf where there is
// no such line.
func kibibytes(root fs.FS, file, name string) float64 {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return math.Inf(1)
	}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name && fields[2] == "kB" {
			return 1024 * ratio(fields[1], "1")
		}
	}
	return math.Inf(1)
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
