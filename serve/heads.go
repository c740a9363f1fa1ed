package serve

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
)

// What the head of a request of HTTP takes: package net/http makes an entry of a map of each of its
// lines, which may have a few bytes.
const (
	headBytes  = 64 << 10
	smallHead  = 4 << 10 // which is counted with its connection
	headFactor = 8       // of a head that is larger
	headsBytes = 16 << 20
)

// readHead counts n bytes that have come, if they are of the head of a request. It is an error that ends
// the connection if there is no memory for them.
func (c *conn) readHead(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.pastHead || c.refused != nil {
		return c.refused
	}
	grown := min(c.head+n, headBytes+smallHead) // what net/http reads at the most
	if more := headMemory(grown) - headMemory(c.head); more > 0 {
		if err := c.of.heads.take(c.client, more); err != nil {
			c.refused = &net.OpError{Op: "read", Net: "tcp", Err: err} // which net/http does not answer
			return c.refused
		}
	}
	c.head = grown
	return nil
}

func headMemory(bytes int) int64 { return headFactor * int64(max(0, bytes-smallHead)) }

// freeHead ends the head of a request, which its request keeps until it has been answered. The caller
// holds mu.
func (c *conn) freeHead() {
	if bytes := headMemory(c.head); bytes > 0 {
		c.of.heads.give(c.client, bytes)
	}
	c.head, c.pastHead = 0, false
}

type connKey struct{}

// countHeads makes a server of HTTP tell its connections where the heads of requests begin and end.
func countHeads(server *http.Server) {
	ours := func(c net.Conn) *conn {
		if t, ok := c.(*tls.Conn); ok {
			c = t.NetConn()
		}
		return c.(*conn)
	}
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, ours(c))
	}
	h := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connKey{}).(*conn)
		c.mu.Lock()
		c.pastHead = true
		c.mu.Unlock()
		h.ServeHTTP(w, r)
	})
	server.ConnState = func(n net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			c := ours(n)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.freeHead()
		}
	}
}
