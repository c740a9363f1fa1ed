package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn/internal/testenv"
)

// events are lines of go test -json.
func events(t *testing.T, list ...event) string {
	var text strings.Builder
	for _, e := range list {
		require.NoError(t, json.NewEncoder(&text).Encode(e))
	}
	return text.String()
}

func TestReport(t *testing.T) {
	said := func(test, text string) event { return event{"output", "p", test, text} }
	ended := func(action, test string) event { return event{action, "p", test, ""} }
	for _, c := range []struct {
		name    string
		events  []event
		out     string
		skipped []string
	}{
		{"passing tests say nothing", []event{
			ended("start", ""), ended("run", "A"), said("A", "=== RUN   A\n"), said("A", "    a_test.go:1: a note\n"),
			said("A", "--- PASS: A (0.00s)\n"), ended("pass", "A"), said("", "PASS\n"), said("", "ok  \tp\t0.1s\n"), ended("pass", ""),
		}, "ok  \tp\t0.1s\n", nil},
		{"a failing test says all, and so does the test around it", []event{
			said("A", "=== RUN   A\n"), said("A", "    a_test.go:1: a note\n"), said("A/sub", "=== RUN   A/sub\n"),
			said("A/sub", "    a_test.go:2: wrong\n"), said("A/sub", "    --- FAIL: A/sub (0.00s)\n"), ended("fail", "A/sub"),
			said("A", "--- FAIL: A (0.00s)\n"), ended("fail", "A"), said("", "FAIL\tp\t0.1s\n"), ended("fail", ""),
		}, "    a_test.go:2: wrong\n    --- FAIL: A/sub (0.00s)\n    a_test.go:1: a note\n--- FAIL: A (0.00s)\nFAIL\tp\t0.1s\n", nil},
		{"a crash shows the test that did not end", []event{
			said("A", "=== RUN   A\n"), said("A", "fatal error: all goroutines are asleep\n"), said("", "FAIL\tp\t0.1s\n"), ended("fail", ""),
		}, "FAIL\tp\t0.1s\nfatal error: all goroutines are asleep\n", nil},
		{"errors of the compiler", []event{
			{"build-output", "", "", "# p\n"}, {"build-output", "", "", "a.go:1: no\n"}, {Action: "build-fail"},
			said("", "FAIL\tp [build failed]\n"), ended("fail", ""),
		}, "# p\na.go:1: no\nFAIL\tp [build failed]\n", nil},
		{"skipped tests are collected by their reasons", []event{
			said("A", "    a_test.go:1: a note\n"), said("A", "    a_test.go:2: cuda is absent: no\n"), said("A", "        driver\n"),
			said("A", "--- SKIP: A (0.00s)\n"), ended("skip", "A"),
			said("B/sub", "    a_test.go:3: cuda is absent: no driver\n"), said("B/sub", "    --- SKIP: B/sub (0.00s)\n"), ended("skip", "B/sub"),
			said("B", "--- PASS: B (0.00s)\n"), ended("pass", "B"),
			said("C", "--- SKIP: C (0.00s)\n"), said("C", "    a_test.go:4: no file\n"), ended("skip", "C"),
			said("", "ok  \tp\t0.1s\n"), ended("pass", ""),
		}, "ok  \tp\t0.1s\n", []string{"p: cuda is absent: no driver (A, B/sub)", "p: no file (C)"}},
		{"tests that -short leaves out lack nothing", []event{
			said("A", "    a_test.go:1: "+testenv.LeftOutByShort+"\n"), said("A", "--- SKIP: A (0.00s)\n"), ended("skip", "A"),
			said("", "ok  \tp\t0.1s\n"), ended("pass", ""),
		}, "ok  \tp\t0.1s\n", nil},
		{"a package without tests", []event{
			said("", "?   \tp\t[no test files]\n"), ended("skip", ""),
		}, "?   \tp\t[no test files]\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			require.NoError(t, r.read(strings.NewReader(events(t, c.events...))))
			require.Equal(t, c.out, out.String())
			require.Equal(t, c.skipped, r.lines())
			require.Empty(t, r.unprinted)
		})
	}
}

func TestTextThatIsNoEvent(t *testing.T) {
	var out strings.Builder
	require.NoError(t, newReport(&out).read(strings.NewReader("go: no such module\nnor a line end")))
	require.Equal(t, "go: no such module\nnor a line end", out.String())
}
