package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// slowReader is a client who takes an answer when it is told to.
type slowReader struct {
	*httptest.ResponseRecorder
	writing chan struct{}
	read    chan struct{}
}

func (r *slowReader) Write(b []byte) (int, error) {
	r.writing <- struct{}{}
	<-r.read
	return r.ResponseRecorder.Write(b)
}

// Answers about all models are counted until their clients have taken them.
func TestReportsAreCounted(t *testing.T) {
	s := newServer(t, Options{}, "digits")
	h := s.Handler()
	for path, method := range map[string]string{
		"/metrics": "GET", "/v2/models": "GET", "/v2/models/stats": "GET", "/page/models": "GET", "/v2/repository/index": "POST",
	} {
		r := httptest.NewRequest(method, path, nil)
		w := &slowReader{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, r)
		}()
		<-w.writing
		require.Positive(t, s.reports.taken(), path)
		close(w.read)
		<-done
		require.Zero(t, s.reports.taken(), path)
		require.Equal(t, http.StatusOK, w.Code, path)
		require.NotZero(t, w.Body.Len(), path)

		require.NoError(t, s.reports.take(clientOf(r.RemoteAddr), s.reports.share))
		require.Equal(t, http.StatusTooManyRequests, record(h, r).Code, path)
		r.RemoteAddr = "192.0.2.77:1"
		require.Equal(t, http.StatusOK, record(h, r).Code, "%s by another one", path)
		s.reports.give("192.0.2.1", s.reports.share)
	}
}
