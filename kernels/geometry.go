package kernels

// Geometry holds the sizes of a step for the CUDA kernels. It mirrors the struct
// of cu/geometry.h, which says what the fields mean.
type Geometry struct {
	InH, InW, InC, InWords                                     int32
	OutH, OutW, OutC, OutWords                                 int32
	Kh, Kw, StrideH, StrideW, DilationH, DilationW, PadT, PadL int32
	PoolH, PoolW                                               int32
	ConvH, ConvW                                               int32
	GroupIn, GroupOut                                          int32
	Words                                                      int32
	Blocks                                                     int32
	Taps                                                       int32
	ZeroPoint                                                  int32
	Cols                                                       int32
	Border, Scaled, Flip, ToBits                               int32
	Activation                                                 int32
	Scheme                                                     int32
	Parts                                                      int32
	RowWords                                                   int32
	Segments                                                   int32
	PatchWords                                                 int32
	TileY, TileX                                               int32
	TileH, TileW                                               int32
	TilesX                                                     int32
	RowPixels, ImageRows                                       int32
	PerRow, PerImage                                           int32
	Images                                                     int32
	Planes, PartPlanes                                         int32
	Vector                                                     int32
	PoolLog2                                                   int32
	First, End                                                 int32
	OtherPixels, OtherC                                        int32
	InPlanes, OutPlanes                                        int32
}
