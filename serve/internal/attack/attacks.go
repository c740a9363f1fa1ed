//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// attack is one of many ways.
type attack struct {
	name     string
	once     func(ctx context.Context) (outcome string, err error)
	outcomes *outcomes
}

func (a attack) repeat(ctx context.Context) {
	for ctx.Err() == nil {
		outcome, err := a.once(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			outcome = "no answer"
			time.Sleep(10 * time.Millisecond)
		}
		a.outcomes.add(outcome)
	}
}

// outcomes counts what became of attacks.
type outcomes struct {
	mu    sync.Mutex
	count map[string]int
}

func (o *outcomes) add(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count[what]++
}

func (o *outcomes) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []string
	for _, what := range slices.Sorted(maps.Keys(o.count)) {
		list = append(list, fmt.Sprintf("%s: %d", what, o.count[what]))
	}
	return strings.Join(list, ", ")
}

// attacks are all.
func attacks(s *server) ([]attack, error) {
	coloured, err := picture(image.NewNRGBA(image.Rect(0, 0, 8192, 8192)))
	if err != nil {
		return nil, err
	}
	smaller, err := picture(image.NewNRGBA(image.Rect(0, 0, 2500, 2500)))
	if err != nil {
		return nil, err
	}
	grey, err := picture(image.NewGray(image.Rect(0, 0, 8192, 8192)))
	if err != nil {
		return nil, err
	}
	inputs, err := gzipped(`{"inputs":[` + strings.Repeat(`{},`, 4_000_000) + `{}]}`)
	if err != nil {
		return nil, err
	}
	id, err := gzipped(`{"id":"` + strings.Repeat("x", 7_900_000) + `","inputs":[]}`)
	if err != nil {
		return nil, err
	}
	scans := manyScans(1500, 1500, 5000)
	infer, classify := "/v2/models/digits/infer", "/v2/models/vehiclenet/classify"
	empties := framed(bytes.Repeat([]byte{5<<3 | 2, 0}, 4_000_000))
	cut := framed(make([]byte, 31<<20))
	cut = cut[:len(cut)-1]
	ways := map[string]func(ctx context.Context) (string, error){
		"png rgba":       s.posting(classify, coloured, ""),
		"png 6 MP":       s.posting(classify, smaller, ""),
		"png grey":       s.posting(classify, grey, ""),
		"jpeg scans":     s.posting(classify, scans, ""),
		"jpeg, left":     s.leaving(classify, scans, 300*time.Millisecond),
		"webp":           s.posting(classify, flatWebP(1250, 1250), ""),
		"webp, left":     s.leaving(classify, flatWebP(1250, 1250), 20*time.Millisecond),
		"webp 33 MP":     s.posting(classify, flatWebP(1<<14, 1<<11), ""),
		"json inputs":    s.posting(infer, inputs, "gzip"),
		"json id":        s.posting(infer, id, "gzip"),
		"load, left":     s.leaving("/v2/repository/models/vehiclenet/load", nil, 2*time.Millisecond),
		"not there":      s.posting("/v2/models/none/infer", []byte("{}"), ""),
		"body drips":     s.dripping,
		"grpc cut":       s.calling("inference.GRPCInferenceService/ModelInfer", cut, 8),
		"grpc stream":    s.calling("inference.GRPCInferenceService/ModelStreamInfer", cut, 8),
		"grpc empties":   s.calling("inference.GRPCInferenceService/ModelInfer", empties, 1),
		"grpc silent":    s.calling("inference.GRPCInferenceService/ModelInfer", nil, 128),
		"grpc watch":     s.calling("grpc.health.v1.Health/Watch", framed(nil), 128),
		"grpc check cut": s.calling("grpc.health.v1.Health/Check", cut, 64),
	}
	var list []attack
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		list = append(list, attack{name, ways[name], &outcomes{count: map[string]int{}}})
	}
	return list, nil
}

// posting posts a body.
func (s *server) posting(path string, body []byte, encoding string) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.http+path, bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		if encoding != "" {
			r.Header.Set("Content-Encoding", encoding)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer.Status[:3], err
	}
}

// leaving posts and goes away.
func (s *server) leaving(path string, body []byte, after time.Duration) func(ctx context.Context) (string, error) {
	post := s.posting(path, body, "")
	return func(ctx context.Context) (string, error) {
		short, cancel := context.WithTimeout(ctx, after)
		defer cancel()
		outcome, err := post(short)
		if short.Err() != nil {
			return "left", nil
		}
		return outcome, err
	}
}

// dripping has 32 connections that send a byte of a body now and then.
func (s *server) dripping(ctx context.Context) (string, error) {
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			c, err := net.Dial("tcp", s.http)
			if err != nil {
				return
			}
			defer c.Close()
			text := "POST /v2/models/digits/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
			for _, err := io.WriteString(c, text); err == nil && ctx.Err() == nil; _, err = c.Write([]byte(" ")) {
				time.Sleep(300 * time.Millisecond)
			}
		})
	}
	all.Wait()
	return "closed", nil
}

// calling makes calls of gRPC at the same time on one connection, whose messages never end.
func (s *server) calling(method string, part []byte, calls int) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		plain := new(http.Protocols)
		plain.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: plain}
		defer transport.CloseIdleConnections()
		statuses := make(chan string, calls)
		for range calls {
			go func() {
				body, never := io.Pipe()
				defer body.Close()
				go func() { _, _ = never.Write(part) }()
				r, err := http.NewRequestWithContext(ctx, "POST", "http://"+s.grpc+"/"+method, body)
				if err != nil {
					statuses <- "no answer"
					return
				}
				r.Header.Set("Content-Type", "application/grpc")
				r.Header.Set("Te", "trailers")
				answer, err := transport.RoundTrip(r)
				if err != nil {
					statuses <- "no answer"
					return
				}
				defer answer.Body.Close()
				limited, cancel := context.WithTimeout(ctx, 30*time.Second) // of watches
				defer cancel()
				defer context.AfterFunc(limited, func() { answer.Body.Close() })()
				_, _ = io.Copy(io.Discard, answer.Body)
				status := answer.Trailer.Get("Grpc-Status")
				if status == "" {
					status = answer.Header.Get("Grpc-Status")
				}
				statuses <- "status " + status
			}()
		}
		last := ""
		for range calls {
			last = <-statuses
		}
		return last, nil
	}
}

// framed is a message of gRPC.
func framed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

func gzipped(text string) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		return nil, err
	}
	err := z.Close()
	return b.Bytes(), err
}

func picture(img image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, img)
	return b.Bytes(), err
}

// flatWebP writes a lossless WebP of one colour, whose pixels take no bits.
func flatWebP(w, h int) []byte {
	// No transform, cache or groups; five codes of one symbol.
	const bits = 1<<3 | 1<<7 | 1<<11 | 1<<15 | 1<<19
	data := binary.LittleEndian.AppendUint32([]byte{0x2f}, uint32(w-1)|uint32(h-1)<<14)
	data = binary.LittleEndian.AppendUint64(data, bits)
	b := append([]byte("RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00"), append(data, 0)...)
	binary.LittleEndian.PutUint32(b[16:], uint32(len(data)))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-8))
	return b
}

// manyScans is a progressive JPEG, grey, of many scans: each a few bytes that say that nothing is in
// any block.
func manyScans(w, h, scans int) []byte {
	blocks := (w + 7) / 8 * ((h + 7) / 8)
	segment := func(b []byte, marker byte, data ...byte) []byte {
		b = append(b, 0xff, marker)
		return append(binary.BigEndian.AppendUint16(b, uint16(2+len(data))), data...)
	}
	b := segment([]byte{0xff, 0xd8}, 0xdb, append([]byte{0}, bytes.Repeat([]byte{1}, 64)...)...)
	b = segment(b, 0xc2, 8, byte(h>>8), byte(h), byte(w>>8), byte(w), 1, 1, 0x11, 0)
	one := append([]byte{1}, make([]byte, 15)...) // a code of one bit, 0
	b = segment(b, 0xc4, append(append([]byte{0x00}, one...), 0)...)
	b = segment(b, 0xc4, append(append([]byte{0x10}, one...), 0xe0)...) // 2^14 blocks and more without anything
	b = segment(b, 0xda, 1, 1, 0x00, 0, 0, 0)
	b = append(b, make([]byte, (blocks+7)/8)...) // differences of 0
	for range scans {
		b = segment(b, 0xda, 1, 1, 0x00, 1, 63, 0)
		bits, n := []byte(nil), 0
		put := func(value, count int) {
			for ; count > 0; count-- {
				if n%8 == 0 {
					bits = append(bits, 0)
				}
				bits[n/8] |= byte(value>>(count-1)&1) << (7 - n%8)
				n++
			}
		}
		for left := blocks; left > 0; left -= 1<<14 + 1<<13 {
			put(0, 1)
			put(1<<13, 14)
		}
		b = append(b, bits...)
	}
	return append(b, 0xff, 0xd9)
}
