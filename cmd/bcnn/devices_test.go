package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
	"github.com/bitcnn/bitcnn/backend/driver"
	"github.com/bitcnn/bitcnn/backend/parity"
	"github.com/bitcnn/bitcnn/internal/tuning"
)

func TestDevices(t *testing.T) {
	text := succeed(t, "devices")
	require.Regexp(t, `(?m)^cpu +CPU +\S.*; --isa .*generic(; no .*)?$`, text)

	backends := map[string]deviceLine{}
	for _, line := range strings.Split(strings.TrimSpace(succeed(t, "devices", "--json")), "\n") {
		var l deviceLine
		decoder := json.NewDecoder(strings.NewReader(line))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&l))
		require.NotEqual(t, l.Device == "", l.Error == "", line)
		backends[l.Backend] = l
	}
	require.Equal(t, "cpu", backends["cpu"].Device)
	require.Equal(t, "CPU", backends["cpu"].Kind)
	for _, isa := range backends["cpu"].ISAs {
		require.Contains(t, text, isa)
		succeed(t, "bench", "--model", "digits", "--runs", "1", "--isa", isa)
	}
	for _, b := range backend.Backends() {
		require.Contains(t, backends, b.Name())
	}
}

// An absent backend is listed with the reason, in one line.
func TestDevicesAbsent(t *testing.T) {
	backend.Register(driver.Unavailable("fake", "the driver\nis asleep"))
	require.Regexp(t, `(?m)^fake +- +.*the driver; is asleep$`, succeed(t, "devices"))
	require.Contains(t, fail(t, exitJob, "bench", "--device", "fake:0"), "the driver; is asleep")
}

// Devices that cannot be used are listed beside those that can.
func TestDevicesUnusable(t *testing.T) {
	useFake(t, fakeDevice{id: "fake:0"})
	backend.Register(pickyBackend{fakeBackend{fakeDevice{id: "fake:0"}}})
	text := succeed(t, "devices")
	require.Regexp(t, `(?m)^fake:0 `, text)
	require.Regexp(t, `(?m)^fake +- +a second one: too old$`, text)
}

// TestDevicesRefused: what the driver of a device has refused is listed with it.
func TestDevicesRefused(t *testing.T) {
	useFake(t, fakeDevice{id: "fake:0", refused: []string{"queues: not today", "a buffer: too large"}})
	require.Regexp(t, `(?m)^fake:0 .*; refused: queues: not today; refused: a buffer: too large$`, succeed(t, "devices"))
	require.Contains(t, succeed(t, "devices", "--json"), `"refused":["queues: not today","a buffer: too large"]`)
}

func TestParity(t *testing.T) {
	model := saveLightNet(t)
	useFake(t, fakeDevice{id: "fake:0"})
	got := objects(t, succeed(t, "parity", "--json", "--device", "all", "--model", model), "device", "cases", "failures")
	require.Len(t, got, len(backend.Devices()))
	for i, d := range backend.Devices() {
		require.Equal(t, d.Info().ID, got[i]["device"])
		require.Positive(t, got[i]["cases"])
		require.Equal(t, 0.0, got[i]["failures"])
	}
	require.Regexp(t, `\Acpu: \d+ cases?, 0 failures\n\z`, succeed(t, "parity", "--device", "cpu", "--model", model))
	require.Regexp(t, fmt.Sprintf(`\Acpu: %d cases, 0 failures\n\z`, len(parity.Core())), succeed(t, "parity", "--device", "cpu", "--cases", "core"))
}

// A device that is wrong in the lowest bit of one output is found.
func TestParityFailure(t *testing.T) {
	useFake(t, fakeDevice{id: "fake:0", spoil: spoilLowestBit})
	r := runCommand(t, "parity", "--json", "--device", "fake", "--model", saveLightNet(t))
	require.Equal(t, exitJob, r.code)
	require.Contains(t, r.stderr, "bcnn: fake:0: ")
	got := objects(t, r.stdout, "device", "cases", "failures")
	require.Positive(t, got[0]["failures"])
	r = runCommand(t, "parity", "--device", "fake", "--model", saveLightNet(t))
	require.Equal(t, exitJob, r.code)
	require.NotContains(t, r.stdout, " 0 failures")
}

func spoilLowestBit(out []float32) {
	out[1] = math.Float32frombits(math.Float32bits(out[1]) ^ 1)
}

func TestDemo(t *testing.T) {
	text := succeed(t, "demo")
	require.Contains(t, text, "cpu: CPU, ")
	require.Contains(t, text, "vehiclenet on cpu")
	require.Contains(t, text, "1000 runs of 1 image")
	require.Equal(t, strings.Count(text, "vehiclenet on ")-1, strings.Count(text, "transfers"), "all devices but the CPU transfer")
	for _, digit := range strings.Split("0123456789", "") {
		require.Regexp(t, `(?m)^digit-`+digit+`\.png +`+digit+` +\d`, text)
	}
	require.Regexp(t, `agree bit for bit on all 112 outputs of 12 images\.\n\z`, text)
}

func TestDemoDisagreement(t *testing.T) {
	spoilt := fakeDevice{id: "fake:0", spoil: spoilLowestBit}
	useFake(t, spoilt)
	env, text, errors := testEnvironment()
	// One run stands for the thousand of the protocol: the fake is slow.
	require.ErrorIs(t, demo(t.Context(), env, []*backend.Device{backend.NewDevice(spoilt)}, 1), errReported)
	require.Contains(t, text.String(), "Not all devices agree: 1 of 1 differ from the reference.")
	require.Regexp(t, `\ntimes include transfers, which the paper excludes; kernels alone: mean \d+\.\d µs\n`, text.String())
	// One output of each digit and one of the batch of random images.
	require.Contains(t, errors.String(), "fake:0: 11 of 112 outputs differ")

	useFake(t, fakeDevice{id: "fake:0"})
	env, text, _ = testEnvironment()
	require.NoError(t, demo(t.Context(), env, []*backend.Device{backend.NewDevice(fakeDevice{id: "fake:0"})}, 1))
	require.Contains(t, text.String(), "1 device and the reference agree bit for bit on all 112 outputs")
}

func testEnvironment() (env *environment, stdout, stderr *strings.Builder) {
	stdout, stderr = &strings.Builder{}, &strings.Builder{}
	return &environment{out: &output{w: stdout}, stderr: stderr}, stdout, stderr
}

// TestTuning shows choices of kernels and removes them.
func TestTuning(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // Linux, macOS, Windows
		t.Setenv(name, dir)
	}
	const nothing = "no choices of kernels are kept\n"
	for _, flag := range []string{"--tuning", "--clear-tuning"} {
		require.Equal(t, nothing, succeed(t, "devices", flag))
		require.Empty(t, succeed(t, "devices", flag, "--json"))
	}
	require.Contains(t, fail(t, exitUsage, "devices", "--tuning", "--clear-tuning"), "contradict each other")

	now := time.Now()
	path := tuning.Path("cuda", "driver", "kernels")
	cache := tuning.Load("H\x1b200", "driver", "kernels", path)
	ago := func(d time.Duration) time.Time { return now.Add(-d).UTC().Round(time.Second) }
	cache.Put("a", tuning.Entry{Step: "1×1×9 → 1×1×2, batch of 1", Variant: "c", Name: "conv_and_16x32", Seconds: 2.5e-6, Measured: ago(50 * time.Hour)})
	cache.Put("b", tuning.Entry{Step: "a conv", Variant: "b", Groups: []int{64, 16}, Seconds: 1e-3, Doubt: 0.25, Measured: ago(210 * time.Minute)})
	cache.Put("c", tuning.Entry{Step: "a dense layer", Variant: "b", Groups: []int{8}, Seconds: 1e-3, Doubt: 0.06, Wrong: []string{"vectors"}, Measured: ago(1830 * time.Minute)})
	broken := filepath.Join(filepath.Dir(path), "opencl-0123456789abcdef.json")
	require.NoError(t, os.WriteFile(broken, []byte("{"), 0o644))

	text := succeed(t, "devices", "--tuning")
	require.Contains(t, text, `cuda: H\x1b200: `+path+"\n")
	require.Regexp(t, `(?m)^  a conv +b: work-groups of 64, 16 +1000\.0 µs  3 h ago +lasts 20 h; another may be 25 % faster$`, text)
	require.Regexp(t, `(?m)^  a dense layer +b: work-groups of 8 +1000\.0 µs  30 h ago +to be measured again; another may be 6 % faster; not used, as it computes wrong bits: vectors$`, text)
	require.Regexp(t, `(?m)^  1×1×9 → 1×1×2, batch of 1 +c: conv_and_16x32 +2\.5 µs +2 days ago +lasts 27 days$`, text)
	require.Contains(t, text, "opencl: "+broken+": unexpected end of JSON input\n")

	lines := strings.SplitAfter(succeed(t, "devices", "--tuning", "--json"), "\n")
	require.Len(t, lines, 5)
	choices := objects(t, strings.Join(lines[:3], ""), "backend", "device", "file", "step", "kernels", "us", "doubt", "wrong", "measured", "until")
	require.Equal(t, "a conv", choices[0]["step"])
	require.Equal(t, "c: conv_and_16x32", choices[2]["kernels"])
	require.Equal(t, 2.5, choices[2]["us"])
	require.Equal(t, []any{"vectors"}, choices[1]["wrong"])
	require.Empty(t, choices[2]["wrong"])
	require.Equal(t, ago(50*time.Hour).Add(tuning.MaxAge).Format(time.RFC3339), choices[2]["until"])
	require.Equal(t, broken, objects(t, lines[3], "backend", "file", "error")[0]["file"])

	removed := objects(t, succeed(t, "devices", "--clear-tuning", "--json"), "removed")
	require.Len(t, removed, 2)
	require.Equal(t, path, removed[0]["removed"])
	require.NoFileExists(t, path)
	require.NoFileExists(t, broken)
	require.NoError(t, os.WriteFile(broken, nil, 0o644))
	require.Equal(t, "removed "+broken+"\n", succeed(t, "devices", "--clear-tuning"))
	require.Equal(t, nothing, succeed(t, "devices", "--tuning"))
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 min", 59 * time.Second: "0 min", 119 * time.Minute: "119 min", 2 * time.Hour: "2 h", 47 * time.Hour: "47 h", 48 * time.Hour: "2 days", 720 * time.Hour: "30 days",
	} {
		require.Equal(t, want, span(d))
	}
}
