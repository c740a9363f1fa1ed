package kern

//go:generate sh -c "cd _gen && go run ./amx"
//go:generate sh -c "cd _gen && go run ./avx512"
//go:generate sh -c "cd _gen && go run ./avx2"
//go:generate sh -c "cd _gen && go run ./ssse3"
//go:generate sh -c "cd _gen && go run ./neon"
//go:generate sh -c "cd _gen && go run ./neonv7"
