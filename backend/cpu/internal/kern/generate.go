package kern

//go:generate sh -c "cd _gen && go run ./avx512 -pkg sets -out ../sets/avx512_amd64.s -stubs ../sets/avx512_amd64.go"
//go:generate sh -c "cd _gen && go run ./avx2 -pkg sets -out ../sets/avx2_amd64.s -stubs ../sets/avx2_amd64.go"
//go:generate sh -c "cd _gen && go run ./ssse3 -pkg ssse3 -out ../ssse3/ssse3_amd64.s -stubs ../ssse3/stubs.go"
//go:generate sh -c "cd _gen && go run ./neon -out ../sets/neon_arm64.s -stubs ../sets/neon_arm64.go"
