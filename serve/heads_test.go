package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Heads of many lines are counted while they come and until their request has been answered, and a
// client who sends too many loses connections.
func TestHeadsAreCounted(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	url, _, _ := serving(t, s, Listeners{})
	var lines strings.Builder
	for i := 0; lines.Len() < headBytes-1000; i++ {
		fmt.Fprintf(&lines, "%x:\n", i+0x1000)
	}
	begin := "GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n"
	taken := func(bytes int) func() bool { return func() bool { return s.heads.taken() == headMemory(bytes) } }

	c := raw(t, url, begin)
	_, err := io.WriteString(c, lines.String())
	require.NoError(t, err)
	size := len(begin) + lines.Len()
	require.Eventually(t, taken(size), time.Minute, time.Millisecond)
	_, err = io.WriteString(c, "\r\n")
	require.NoError(t, err)
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.Equal(t, 200, r.StatusCode)
	require.Eventually(t, taken(0), time.Minute, time.Millisecond, "the connection is kept, its head is not")

	// A body that nobody reads is no head of the next request.
	body := strings.Repeat("x", 100_000)
	_, err = fmt.Fprintf(c, "GET /none HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	require.NoError(t, err)
	require.Eventually(t, taken(0), time.Minute, time.Millisecond)

	var last net.Conn
	for n := headMemory(size); ; n += headMemory(size) { // of two heads that are read at once, both may be too much
		last = raw(t, url, begin)
		_, _ = io.WriteString(last, lines.String()) // it may be closed
		if n > s.heads.share {
			break
		}
		require.Eventually(t, func() bool { return s.heads.taken() == n }, time.Minute, time.Millisecond)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(string(get(t, url+"/metrics").body), `bcnn_rejected_total{reason="headers"} 1`)
	}, time.Minute, time.Millisecond)
	require.LessOrEqual(t, s.heads.taken(), s.heads.share)
	closed(t, last)
	fine(t, url)
}
