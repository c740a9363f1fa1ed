package serve_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/bitcnn/bitcnn"
	"github.com/bitcnn/bitcnn/serve"
)

// A server of one bundled model, which is asked whether it is ready, and ends.
func ExampleServer() {
	ctx, end := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	s, err := serve.New(serve.Options{
		Load: func(_ context.Context, source string) (*bitcnn.Model, error) { return bitcnn.Bundled(source) },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if err := s.Add(ctx, "digits", "digits"); err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, serve.Listeners{HTTP: listener}) }()

	r, err := http.Get("http://" + listener.Addr().String() + "/v2/models/digits/ready")
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		log.Fatal(err)
	}
	r.Body.Close()
	fmt.Println(string(body))
	end()
	fmt.Println(<-ended)
	// Output:
	// {"name":"digits","ready":true}
	// <nil>
}
