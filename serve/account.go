package serve

import (
	"cmp"
	"net"
	"net/netip"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/bitcnn/bitcnn/internal/host"
)

// defaultMemory is the budget where none is given: a quarter of the memory that the process may
// use, up to 2 GiB.
func defaultMemory() int64 {
	const most, unknown = 2 << 30, 512 << 20
	return min(cmp.Or(host.Memory()/4, unknown), most)
}

// account counts something that requests take and give back, all together and each client for
// itself. A client gets three quarters at the most, so that there is something left for others,
// whatever one of them does.
type account struct {
	what        string // "bytes of memory are taken by requests"
	reason      string // label of the metric of what was turned away
	most, share int64
	metrics     *metrics

	mu      sync.Mutex
	used    int64
	clients map[string]int64
}

func newAccount(what, reason string, most int64, m *metrics) *account {
	return &account{what: what, reason: reason, most: most, share: most - most/4, metrics: m, clients: map[string]int64{}}
}

// take takes n for a client, or nothing and says why not.
func (a *account) take(client string, n int64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	has := a.clients[client]
	if n > a.share-has || n > a.most-a.used {
		a.metrics.rejected.WithLabelValues(a.reason).Inc()
		if n > a.share-has {
			return failf(codes.ResourceExhausted, "%d %s from your address; %d more would exceed its limit of %d", has,
				a.what, n, a.share)
		}
		return failf(codes.ResourceExhausted, "%d %s; %d more would exceed the limit of %d", a.used, a.what, n, a.most)
	}
	a.used += n
	a.clients[client] = has + n
	return nil
}

// give gives n back that a client has taken.
func (a *account) give(client string, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= n
	if a.clients[client] -= n; a.clients[client] == 0 {
		delete(a.clients, client)
	}
}

// taken is what all have together.
func (a *account) taken() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// hold is the memory of one request, which ends with free.
type hold struct {
	of     *account
	client string
	bytes  int64
}

// take takes n bytes more. What no client could get, however long it waits, is too large.
func (h *hold) take(n int64) error {
	if n > h.of.share-h.bytes {
		h.of.metrics.rejected.WithLabelValues(h.of.reason).Inc()
		return badf("%w: the request needs %d bytes of memory, one address gets %d", errBody, h.bytes+n, h.of.share)
	}
	if err := h.of.take(h.client, n); err != nil {
		return err
	}
	h.bytes += n
	return nil
}

func (h *hold) give(n int64) {
	h.of.give(h.client, n)
	h.bytes -= n
}

func (h *hold) free() { h.give(h.bytes) }

// clientOf is by what the clients are told apart: the address of a machine, or the network of 64
// bits that one has to itself in IPv6.
func clientOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap().WithZone(""); ip.Is6() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
