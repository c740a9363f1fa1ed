package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/backend"
)

func TestDevices(t *testing.T) {
	text := succeed(t, "devices")
	require.Regexp(t, `(?m)^cpu +CPU +\S.*; --isa .*generic$`, text)

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
	backend.Register(backend.Unavailable("fake", "the driver\nis asleep"))
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
	env, text, errors := testEnvironment()
	// One run stands for the thousand of the protocol: the fake is slow.
	require.ErrorIs(t, demo(t.Context(), env, []backend.Device{spoilt}, 1), errReported)
	require.Contains(t, text.String(), "Not all devices agree: 1 of 1 differ from the reference.")
	require.Contains(t, text.String(), "\nthese times count the transfers of image and result, which the paper leaves out\n")
	// One output of each digit and one of the batch of random images.
	require.Contains(t, errors.String(), "fake:0: 11 of 112 outputs differ")

	env, text, _ = testEnvironment()
	require.NoError(t, demo(t.Context(), env, []backend.Device{fakeDevice{id: "fake:0"}}, 1))
	require.Contains(t, text.String(), "1 device and the reference agree bit for bit on all 112 outputs")
}

func testEnvironment() (env *environment, stdout, stderr *strings.Builder) {
	stdout, stderr = &strings.Builder{}, &strings.Builder{}
	return &environment{out: &output{w: stdout}, stderr: stderr}, stdout, stderr
}
