package host

import (
	"maps"
	"math"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func files(contents map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, s := range contents {
		m[name] = &fstest.MapFile{Data: []byte(s)}
	}
	return m
}

func TestCPUQuota(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"no control groups", nil, inf},
		{"v2 without quota", map[string]string{
			"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/cpu.max": "max 100000\n"}, inf},
		{"v2", map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "250000 100000\n"}, 2.5},
		{"v2, quota of a parent", map[string]string{
			"proc/self/cgroup":          "0::/a/b\n",
			"sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
			"sys/fs/cgroup/a/cpu.max":   "150000 50000\n"}, 3},
		{"v2 in a container", map[string]string{
			"proc/self/cgroup": "0::/../../host/path\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2},
		{"v1", map[string]string{
			"proc/self/cgroup":                      "3:memory:/m\n2:cpu,cpuacct:/x\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us":  "400000\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, 4},
		{"v1 without quota", map[string]string{
			"proc/self/cgroup":                      "2:cpuacct,cpu:/x\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us":  "-1\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, inf},
		{"another controller", map[string]string{
			"proc/self/cgroup":                      "2:cpuset:/x\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_quota_us":  "100000\n",
			"sys/fs/cgroup/cpu/x/cpu.cfs_period_us": "100000\n"}, inf},
		{"nonsense", map[string]string{
			"proc/self/cgroup": "0::/a\nx\n\n", "sys/fs/cgroup/a/cpu.max": "0 0"}, inf},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, cpuQuota(files(c.files)))
			require.GreaterOrEqual(t, threads(cpuQuota(files(c.files))), 1)
		})
	}
}

func TestFractionOfACPUIsOneThread(t *testing.T) {
	require.Equal(t, 1, threads(cpuQuota(files(map[string]string{
		"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000\n"}))))
}

func TestMemoryIsTheLeastOfAllLimits(t *testing.T) {
	const (
		machine   = "MemTotal:        2048 kB\nMemFree:  1 kB\n"
		unlimited = "Max file locks            unlimited            unlimited            locks\n" +
			"Max address space         unlimited            unlimited            bytes\n"
		limited = "Max address space         1500000              2000000              bytes\n"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing known", nil, 0},
		{"machine", map[string]string{"proc/meminfo": machine}, 2048 << 10},
		{"no total", map[string]string{"proc/meminfo": "MemFree: 1 kB\n"}, 0},
		{"no number", map[string]string{"proc/meminfo": "MemTotal: x kB\n"}, 0},
		{"negative", map[string]string{"proc/meminfo": "MemTotal: -5 kB\n"}, 0},
		{"absurd", map[string]string{"proc/meminfo": "MemTotal: 99999999999999999999 kB\n"}, 0},
		{"no limits", map[string]string{"proc/meminfo": machine, "proc/self/limits": unlimited,
			"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 2048 << 10},
		{"group", map[string]string{"proc/meminfo": machine,
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1000000\n"}, 1000000},
		{"group above", map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "1000000\n", "sys/fs/cgroup/a/memory.max": "500000\n"}, 500000},
		{"group of version 1", map[string]string{"proc/meminfo": machine,
			"proc/self/cgroup": "4:memory:/x\n1:cpu:/\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "400000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n"}, 400000},
		{"address space", map[string]string{"proc/meminfo": machine, "proc/self/limits": limited}, 1500000},
		{"address space in use", map[string]string{"proc/meminfo": machine, "proc/self/limits": limited,
			"proc/self/status": "Name:\tx\nVmSize:\t    1000 kB\n"}, 1500000 - 1000<<10},
		{"no address space left", map[string]string{"proc/meminfo": machine, "proc/self/limits": limited,
			"proc/self/status": "VmSize: 2000 kB\n"}, 1},
		{"limits cut off", map[string]string{"proc/meminfo": machine, "proc/self/limits": "Max address space"}, 2048 << 10},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, bytes(memory(files(c.files)))) })
	}
	require.Positive(t, Memory())
}

func TestAvailableIsWhatTheLimitsLeave(t *testing.T) {
	const (
		machine = "MemTotal:        4096 kB\nMemFree:  1 kB\nMemAvailable:    2048 kB\n"
		stat    = "cache 300000\ninactive_file 200000\ntotal_inactive_file 100000\n"
	)
	v2 := map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a\n",
		"sys/fs/cgroup/a/memory.max": "1000000\n", "sys/fs/cgroup/a/memory.current": "700000\n"}
	v1 := map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/x\n",
		"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1000000\n", "sys/fs/cgroup/memory/x/memory.usage_in_bytes": "600000\n"}
	with := func(files map[string]string, name, content string) map[string]string {
		more := maps.Clone(files)
		more[name] = content
		return more
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing known", nil, 0},
		{"machine", map[string]string{"proc/meminfo": machine}, 2048 << 10},
		{"group", v2, 300000},
		{"group with files", with(v2, "sys/fs/cgroup/a/memory.stat", stat), 500000},
		{"group with no more than files", with(v2, "sys/fs/cgroup/a/memory.stat", "inactive_file 900000\n"), 1000000},
		{"group that is full", with(v2, "sys/fs/cgroup/a/memory.current", "1000001\n"), 1},
		{"group without usage", with(v2, "sys/fs/cgroup/a/memory.current", "x\n"), 1000000},
		{"group without limit", with(v2, "sys/fs/cgroup/a/memory.max", "max\n"), 2048 << 10},
		{"group above", with(with(v2, "sys/fs/cgroup/memory.max", "900000\n"), "sys/fs/cgroup/memory.current", "800000\n"), 100000},
		{"group of version 1", v1, 400000},
		{"group of version 1 with files", with(v1, "sys/fs/cgroup/memory/x/memory.stat", stat), 500000},
		{"address space", with(v2, "proc/self/limits", "Max address space 2000 2000 bytes\n"), 2000},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, bytes(available(files(c.files)))) })
	}
	require.Positive(t, Available())
	total := Memory()
	require.LessOrEqual(t, Available(), total)
}

func FuzzControlGroups(f *testing.F) {
	f.Add("0::/a\n", "max 100000\n", "-1")
	f.Add("0::/\n1:cpu:/b\n", "50000 100000\n", "20000")
	f.Add("0::/\n4:memory:/b\n", "MemTotal: 5 kB\nMax address space 7 8 bytes\nVmSize: 1 kB\n", "20000")
	f.Fuzz(func(t *testing.T, membership, limit, quota string) {
		root := files(map[string]string{
			"proc/self/cgroup":                    membership,
			"sys/fs/cgroup/cpu.max":               limit,
			"sys/fs/cgroup/a/cpu.max":             limit,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  quota,
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": limit,
		})
		require.Greater(t, cpuQuota(root), 0.0)
		for _, name := range []string{"proc/meminfo", "proc/self/limits", "proc/self/status", "sys/fs/cgroup/memory.max"} {
			root[name] = &fstest.MapFile{Data: []byte(limit)}
		}
		root["sys/fs/cgroup/memory.current"] = &fstest.MapFile{Data: []byte(quota)}
		root["sys/fs/cgroup/memory.stat"] = &fstest.MapFile{Data: []byte(limit)}
		require.GreaterOrEqual(t, bytes(memory(root)), int64(0))
		require.GreaterOrEqual(t, bytes(available(root)), int64(0))
		require.GreaterOrEqual(t, threads(cpuQuota(root)), 1)
	})
}
