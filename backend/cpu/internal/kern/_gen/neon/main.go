// Command neon writes the kernels of the instruction sets neon, neondot, neoni8mm and sme2.
package main

import (
	"log"
	"os"

	"github.com/bitcnn/bitcnn/backend/cpu/internal/kern/_gen/gen"
)

func main() {
	log.SetFlags(0)
	stubs := gen.Stubs{Arch: "arm64", Pkg: "neon"}
	for _, family := range []struct {
		name  string
		write func(a *asm)
	}{
		{"conv_bits", (*asm).convBits},
		{"conv_pieces", (*asm).convPieces},
		{"conv_carries", (*asm).convCarries},
		{"conv_planes", (*asm).convPlanes},
		{"conv_outer", (*asm).convOuter},
		{"conv_bytes", (*asm).convBytes},
		{"conv_products", (*asm).convProducts},
		{"dot_bits", (*asm).dotBits},
		{"float", (*asm).float},
		{"elementwise", (*asm).elementwise},
		{"levels", (*asm).levels},
		{"look_up", (*asm).lookUp},
		{"pool", (*asm).pools},
		{"repack", (*asm).repack},
		{"image", (*asm).image},
		{"peak", (*asm).peak},
	} {
		a := &asm{}
		family.write(a)
		text := gen.Head("arm64", "neon") + "#include \"textflag.h\"\n" + a.code.String()
		if err := os.WriteFile("../neon/"+family.name+"_arm64.s", []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
		stubs.Write(a.stubs.Bytes())
	}
	stubs.Save()
}
