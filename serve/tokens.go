package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
)

// tokens are the hashes of bearer tokens: comparing those says nothing of the tokens.
type tokens [][sha256.Size]byte

func newTokens(list []string) tokens {
	var t tokens
	for _, s := range list {
		t = append(t, sha256.Sum256([]byte(s)))
	}
	return t
}

// check checks the header of a request that authorises it.
func (t tokens) check(authorization string) error {
	if len(t) == 0 {
		return nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return failure{codes.Unauthenticated, fmt.Errorf("the request has no bearer token")}
	}
	given, found := sha256.Sum256([]byte(token)), 0
	for _, want := range t {
		found |= subtle.ConstantTimeCompare(given[:], want[:])
	}
	if found == 0 {
		return failure{codes.Unauthenticated, fmt.Errorf("invalid bearer token")}
	}
	return nil
}
