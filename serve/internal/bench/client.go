package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve/internal/pb"
)

// httpRequest writes a request with an image as binary data.
func httpRequest(model string, x bitcnn.Tensor) []byte {
	shape := fmt.Sprintf("[1,%d,%d,%d]", x.Shape.H, x.Shape.W, x.Shape.C)
	header := fmt.Sprintf(`{"inputs":[{"name":"input","datatype":"UINT8","shape":%s,"parameters":{"binary_data_size":%d}}],`+
		`"parameters":{"binary_data_output":true}}`, shape, len(x.U8))
	return fmt.Appendf(nil,
		"POST /v2/models/%s/infer HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: %d\r\n"+
			"Content-Length: %d\r\n\r\n%s%s", model, len(header), len(header)+len(x.U8), header, x.U8)
}

// client is a connection of HTTP/1.1 that is kept. It does as little as it can, so that what is
// measured is the server.
type client struct {
	conn net.Conn
	read *bufio.Reader
}

func dial(address string) (*client, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{c, bufio.NewReader(c)}, nil
}

// ask sends a request and reads the response.
func (c *client) ask(request []byte) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	status, err := c.read.ReadSlice('\n')
	if err != nil {
		return err
	}
	fine, length := strings.HasPrefix(string(status), "HTTP/1.1 200"), -1
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= len("\r\n") {
			break
		}
		const name = "content-length: "
		if len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name) {
			if length, err = strconv.Atoi(strings.TrimSpace(string(line[len(name):]))); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("a response without a length")
	}
	if !fine {
		body, _ := io.ReadAll(io.LimitReader(c.read, int64(length)))
		return fmt.Errorf("refused: %s", body)
	}
	_, err = c.read.Discard(length)
	return err
}

// grpcCall returns a call by gRPC, on one connection.
func grpcCall(address, model string, x bitcnn.Tensor) (func() error, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	service := pb.NewGRPCInferenceServiceClient(conn)
	request := &pb.ModelInferRequest{
		ModelName: model, RawInputContents: [][]byte{x.U8},
		Inputs: []*pb.ModelInferRequest_InferInputTensor{{
			Name: "input", Datatype: "UINT8", Shape: []int64{1, int64(x.Shape.H), int64(x.Shape.W), int64(x.Shape.C)},
		}},
	}
	return func() error {
		_, err := service.ModelInfer(context.Background(), request)
		return err
	}, nil
}

// metrics reads those of the server that have no labels.
func (b *bench) metrics() (map[string]float64, error) {
	r, err := http.Get("http://" + b.http + "/metrics")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	m := map[string]float64{}
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		if name, text, ok := strings.Cut(lines.Text(), " "); ok {
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				m[name] = v
			}
		}
	}
	return m, lines.Err()
}

// serverCPU returns the seconds that the server has computed; 0 if it does not say.
func (b *bench) serverCPU() float64 {
	m, err := b.metrics()
	if err != nil {
		return 0
	}
	return m["process_cpu_seconds_total"]
}
