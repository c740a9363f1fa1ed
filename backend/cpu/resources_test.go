package cpu

import (
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

func TestCgroupQuota(t *testing.T) {
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
			require.Equal(t, c.want, cgroupQuota(files(c.files)))
			require.GreaterOrEqual(t, availableThreads(files(c.files)), 1)
		})
	}
}

func TestFractionOfACPUIsOneThread(t *testing.T) {
	require.Equal(t, 1, availableThreads(files(map[string]string{
		"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000\n"})))
}

func TestSystemMemory(t *testing.T) {
	for content, want := range map[string]int64{
		"MemTotal:        2048 kB\nMemFree:  1 kB\n": 2048 << 10,
		"MemFree: 1 kB\n":                     0,
		"MemTotal: x kB\n":                    0,
		"MemTotal: -5 kB\n":                   0,
		"MemTotal: 99999999999999999999 kB\n": 0,
		"":                                    0,
	} {
		require.Equal(t, want, systemMemory(files(map[string]string{"proc/meminfo": content})), content)
	}
	require.Zero(t, systemMemory(files(nil)))
}

func FuzzCgroupQuota(f *testing.F) {
	f.Add("0::/a\n", "max 100000\n", "-1")
	f.Add("0::/\n1:cpu:/b\n", "50000 100000\n", "20000")
	f.Fuzz(func(t *testing.T, membership, limit, quota string) {
		root := files(map[string]string{
			"proc/self/cgroup":                    membership,
			"sys/fs/cgroup/cpu.max":               limit,
			"sys/fs/cgroup/a/cpu.max":             limit,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  quota,
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": limit,
		})
		require.Greater(t, cgroupQuota(root), 0.0)
		root["proc/meminfo"] = &fstest.MapFile{Data: []byte(membership)}
		require.GreaterOrEqual(t, systemMemory(root), int64(0))
		require.GreaterOrEqual(t, availableThreads(root), 1)
	})
}
