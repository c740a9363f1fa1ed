package gpu

import (
	"fmt"
	"strings"

	"github.com/bitcnn/bitcnn/backend/driver"
)

// Explain says which kernels of a variant execute a step, in groups of how many threads
// each, and why. tile is a format with a place for the numbers.
func Explain(variant string, kernels []string, tile string, threads []int, why string) driver.Choice {
	numbers := strings.ReplaceAll(strings.Trim(fmt.Sprint(threads), "[]"), " ", ", ")
	return driver.Choice{Kernel: variant + ": " + strings.Join(kernels, ", "), Tile: fmt.Sprintf(tile, numbers), Why: why}
}

// About says what a step does with a batch, for people.
func (g Geometry) About(batch int) string {
	about := fmt.Sprintf("%d×%d×%d → %d×%d×%d", g.InH, g.InW, g.InC, g.OutH, g.OutW, g.OutC)
	if g.Kh*g.Kw > 1 {
		about += fmt.Sprintf(", window of %d×%d", g.Kh, g.Kw)
	}
	return fmt.Sprintf("%s, batch of %d", about, batch)
}
