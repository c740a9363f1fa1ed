//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// another is an address of this machine that is not that of the attackers.
var another = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}

// client is one who means well.
type client struct {
	server *server

	once sync.Once
	http *http.Client
	body []byte

	mu      sync.Mutex
	stopped bool
	took    []time.Duration // of answers; those that failed took long
}

// failed is the time of an answer that did not come.
const failed = time.Hour

func (c *client) repeat(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		err := c.ask(ctx)
		took := time.Since(began)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			took = failed
		}
		c.mu.Lock()
		stopped := c.stopped
		if !stopped {
			c.took = append(c.took, took)
		}
		c.mu.Unlock()
		if stopped {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// stop ends repeat.
func (c *client) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

// ask asks for an inference.
func (c *client) ask(ctx context.Context) error {
	c.once.Do(func() {
		dialer := net.Dialer{LocalAddr: another}
		c.http = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dialer.DialContext}}
		c.body, _ = json.Marshal(map[string]any{"inputs": []any{map[string]any{
			"name": "input", "datatype": "UINT8", "shape": []int{1, 28, 28, 1}, "data": make([]int, 784),
		}}})
	})
	r, err := http.NewRequestWithContext(ctx, "POST", "http://"+c.server.http+"/v2/models/digits/infer", bytes.NewReader(c.body))
	if err != nil {
		return err
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// summary returns the times of all answers, sorted, and the percentage of those within a second.
func (c *client) summary() (took []time.Duration, within float64) {
	c.mu.Lock()
	took = slices.Clone(c.took)
	c.mu.Unlock()
	slices.Sort(took)
	n, _ := slices.BinarySearch(took, time.Second)
	return took, 100 * float64(n) / float64(max(1, len(took)))
}
