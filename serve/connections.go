package serve

import (
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// busy is how long a connection counts as in use after its last bytes, or after its beginning.
const busy = time.Second

// listener bounds the number of connections. Where there are as many as may be, a new one takes
// the place of that which has been silent for the longest time, first of those that never said
// anything, so that nobody keeps others away by connections that do nothing. If all have been
// used or opened within the last second, it is one of the client who has the most of them, and if that is
// the one who comes, the new one is closed.
type listener struct {
	net.Listener
	most    int
	metrics *metrics
	heads   *account // of requests of HTTP; nil for gRPC

	mu    sync.Mutex
	conns map[*conn]struct{}
}

func newListener(l net.Listener, most int, m *metrics) *listener {
	return &listener{Listener: l, most: most, metrics: m, conns: map[*conn]struct{}{}}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted, of: l, client: clientOf(accepted.RemoteAddr().String())}
		c.used.Store(time.Now().UnixNano())
		if l.admit(c) {
			return c, nil
		}
		accepted.Close()
	}
}

// admit makes room for a connection.
func (l *listener) admit(c *conn) bool {
	l.mu.Lock()
	var oldest *conn
	if len(l.conns) >= l.most {
		since := time.Now().Add(-busy).UnixNano()
		for other := range l.conns {
			if other.used.Load() <= since && (oldest == nil || other.before(oldest)) {
				oldest = other
			}
		}
		l.metrics.rejected.WithLabelValues(byConnections).Inc()
		if oldest == nil {
			if oldest = l.ofTheGreedy(c.client); oldest == nil {
				l.mu.Unlock()
				return false
			}
		}
		delete(l.conns, oldest)
	}
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	if oldest != nil {
		oldest.Conn.Close()
	}
	return true
}

// ofTheGreedy returns the connection that has been silent for the longest time of the client who has
// the most; nil if a client who comes would have as many. The caller holds mu.
func (l *listener) ofTheGreedy(comes string) *conn {
	count, greedy := map[string]int{}, ""
	for c := range l.conns {
		if count[c.client]++; count[c.client] > count[greedy] {
			greedy = c.client
		}
	}
	if count[greedy] <= count[comes]+1 {
		return nil
	}
	var oldest *conn
	for c := range l.conns {
		if c.client == greedy && (oldest == nil || c.before(oldest)) {
			oldest = c
		}
	}
	return oldest
}

// closeSilent closes the connections that never said anything. Servers that end wait for those: that
// of HTTP for 5 seconds, that of gRPC for as long as a handshake may take.
func (l *listener) closeSilent() { l.close(func(c *conn) bool { return !c.spoke.Load() }) }

// closeAll closes all connections.
func (l *listener) closeAll() { l.close(func(*conn) bool { return true }) }

func (l *listener) close(which func(*conn) bool) {
	l.mu.Lock()
	list := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range list {
		if which(c) {
			c.Close()
		}
	}
}

// conn is a connection that knows when it was used last.
type conn struct {
	net.Conn
	of      *listener
	client  string
	used    atomic.Int64 // in nanoseconds since 1970
	spoke   atomic.Bool  // the client has sent something
	watches atomic.Int32 // calls of Health.Watch

	mu       sync.Mutex
	answers  map[*answered]struct{} // that the client has not taken yet
	closed   bool
	head     int   // bytes of the head of the request
	pastHead bool  // what comes now is behind it
	refused  error // why no more of it is read
}

// address is that of the client of a connection, which tells those the connection who are told
// nothing but the address.
type address struct {
	net.Addr
	conn *conn
}

func (c *conn) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

// keep keeps an answer until drop, or until the connection is closed: gRPC forgets those then.
func (c *conn) keep(a *answered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return // its call has ended, too
	}
	if c.answers == nil {
		c.answers = map[*answered]struct{}{}
	}
	c.answers[a] = struct{}{}
}

func (c *conn) drop(a *answered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.answers, a)
}

// before reports whether a connection makes room before another one.
func (c *conn) before(other *conn) bool {
	if a, b := c.spoke.Load(), other.spoke.Load(); a != b {
		return b
	}
	return c.used.Load() < other.used.Load()
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.spoke.Store(true)
		c.used.Store(time.Now().UnixNano())
		if c.of.heads != nil {
			if refused := c.readHead(n); refused != nil {
				return 0, refused
			}
		}
	}
	return n, err
}

func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.used.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	c.mu.Lock()
	answers := c.answers
	c.answers, c.closed = nil, true
	c.freeHead()
	c.mu.Unlock()
	for a := range answers {
		a.release()
	}
	return c.Conn.Close()
}
