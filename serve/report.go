package serve

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
)

// reportBytes is the memory of all answers about all models, which whoever reads slowly keeps.
const reportBytes = 32 << 20

// report makes answers about all models in turns, and counts them until their clients have taken them:
// they are as large as there are models, and nothing else keeps a client from asking for many of them.
func (s *Server) report(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		client := clientOf(r.RemoteAddr)
		answer, err := s.makeReport(r, client, w.Header(), h)
		if err != nil {
			return err
		}
		defer s.reports.give(client, int64(answer.Cap()))
		w.Header().Set("Content-Length", strconv.Itoa(answer.Len()))
		_, err = w.Write(answer.Bytes())
		return clientGone(err)
	}
}

// makeReport makes an answer whose memory has been taken.
func (s *Server) makeReport(r *http.Request, client string, header http.Header, h handler) (*report, error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.opts.Timeout)
	defer cancel()
	if err := s.reporting.wait(ctx, client); err != nil {
		return nil, err
	}
	defer s.reporting.done(client)
	answer := &report{header: header}
	if err := h(answer, r); err != nil {
		return nil, err
	}
	return answer, s.reports.take(client, int64(answer.Cap()))
}

// report is an answer that is made before it is sent. All are good: errors are returned.
type report struct {
	bytes.Buffer
	header http.Header
}

// Header implements http.ResponseWriter.
func (r *report) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (*report) WriteHeader(int) {}
