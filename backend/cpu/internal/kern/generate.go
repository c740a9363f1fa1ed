package kern

//go:generate sh -c "cd _gen && go run ./avx512 -pkg kern -out ../avx512_amd64.s -stubs ../avx512_amd64.go"
//go:generate sh -c "cd _gen && go run ./avx2 -pkg kern -out ../avx2_amd64.s -stubs ../avx2_amd64.go"
//go:generate sh -c "cd _gen && go run ./ssse3 -pkg kern -out ../ssse3_amd64.s -stubs ../ssse3_amd64.go"
//go:generate sh -c "cd _gen && go run ./neon -out ../neon_arm64.s -stubs ../neon_arm64.go"
