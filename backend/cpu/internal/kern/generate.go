package kern

// The generators read where the fields of jobs are (_gen/gen/offsets.go): a changed job needs new assembly,
// and _gen/check.sh fails without.

//go:generate sh -c "cd _gen && go run ./amx"
//go:generate sh -c "cd _gen && go run ./avx512"
//go:generate sh -c "cd _gen && go run ./avx2"
//go:generate sh -c "cd _gen && go run ./ssse3"
//go:generate sh -c "cd _gen && go run ./neon"
//go:generate sh -c "cd _gen && go run ./neonv7"
