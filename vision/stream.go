package vision

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
)

// Decoder reads images that come one after the other, such as those of a camera:
//
//	ffmpeg -i /dev/video0 -f image2pipe -c:v mjpeg -
//
// Each may be of another format, as Decode knows them. It is returned as soon as its last
// byte has come.
type Decoder struct {
	r      *bufio.Reader
	most   int   // bytes of an image
	failed error // behind which no image can be found
}

// NewDecoder returns a decoder that reads from r, and may read more than it needs.
func NewDecoder(r io.Reader) *Decoder { return &Decoder{r: bufio.NewReader(r), most: MaxFile} }

// MaxFile is how many bytes an image of a Decoder may have.
const MaxFile = 256 << 20

// Decode reads the next image, as the function Decode does; the context does not end a call of
// the reader. Behind the last one it returns io.EOF. Where an image is
// broken inside, the one behind it can still be read; where its end cannot be found, Done is
// true, and the error is returned by all further calls.
func (d *Decoder) Decode(ctx context.Context) (image.Image, error) { return d.next(ctx, Decode) }

// DecodeFor is Decode for an image that p.Fill is to take, as p.Decode does it.
func (d *Decoder) DecodeFor(ctx context.Context, p Preprocessing) (image.Image, error) {
	return d.next(ctx, p.Decode)
}

func (d *Decoder) next(ctx context.Context, decode func(context.Context, io.Reader) (image.Image, error)) (image.Image, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if d.failed != nil {
		return nil, d.failed
	}
	file := &frame{r: d.r, most: d.most}
	head, err := d.r.Peek(8)
	switch {
	case len(head) == 0:
		if d.failed = err; err != io.EOF {
			d.failed = fmt.Errorf("broken image: %w", err)
		}
	case bytes.HasPrefix(head, []byte("\xff\xd8")):
		d.failed = file.jpeg()
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		d.failed = file.png()
	case bytes.HasPrefix(head, []byte("GIF8")):
		d.failed = file.gif()
	case bytes.HasPrefix(head, []byte("RIFF")):
		d.failed = file.webp(ctx)
	case bytes.HasPrefix(head, []byte("BM")):
		d.failed = file.bmp()
	default:
		d.failed = imageError(ctx, image.ErrFormat)
	}
	if d.failed != nil {
		if errors.Is(d.failed, io.ErrUnexpectedEOF) {
			d.failed = errors.New("broken image: it ends too early")
		}
		return nil, d.failed
	}
	return decode(ctx, &file.bytes)
}

// Done reports whether no further image can be read.
func (d *Decoder) Done() bool { return d.failed != nil }

// frame takes the bytes of an image, of which it reads no more than what tells where it ends.
type frame struct {
	r     *bufio.Reader
	most  int
	bytes bytes.Buffer
}

// take takes n bytes and returns them, valid until the next call.
func (f *frame) take(n int) ([]byte, error) {
	from := f.bytes.Len()
	if n > f.most-from {
		return nil, f.large()
	}
	var err error
	if n == 1 {
		var b byte
		if b, err = f.r.ReadByte(); err == nil {
			f.bytes.WriteByte(b)
		}
	} else {
		_, err = io.CopyN(&f.bytes, f.r, int64(n))
	}
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return f.bytes.Bytes()[from:], nil
}

func (f *frame) large() error { return fmt.Errorf("the image has more than %d bytes", f.most) }

// until takes bytes up to the next one of a kind.
func (f *frame) until(last byte) error {
	for {
		part, err := f.r.ReadSlice(last)
		if len(part) > f.most-f.bytes.Len() {
			return f.large()
		}
		f.bytes.Write(part)
		switch err {
		case nil:
			return nil
		case bufio.ErrBufferFull:
		case io.EOF:
			return io.ErrUnexpectedEOF
		default:
			return err
		}
	}
}

// jpeg takes segments up to the end of the image, ITU-T T.81, annex B.
func (f *frame) jpeg() error {
	const (
		startOfImage, endOfImage = 0xd8, 0xd9
		restart0, restart7       = 0xd0, 0xd7
		temporary                = 0x01
	)
	for {
		// What is no marker is of a scan; 0xff is followed by 0 there.
		if err := f.until(0xff); err != nil {
			return err
		}
		marker := byte(0xff)
		for marker == 0xff { // fill bytes
			b, err := f.take(1)
			if err != nil {
				return err
			}
			marker = b[0]
		}
		switch {
		case marker == endOfImage:
			return nil
		case marker == 0, marker == startOfImage, marker == temporary, marker >= restart0 && marker <= restart7:
		default:
			b, err := f.take(2)
			if err != nil {
				return err
			}
			size := int(binary.BigEndian.Uint16(b)) // with these two bytes
			if size < 2 {
				return fmt.Errorf("broken image: a segment of %d bytes", size)
			}
			if _, err := f.take(size - 2); err != nil {
				return err
			}
		}
	}
}

// png takes chunks up to IEND, https://www.w3.org/TR/png-3/#5DataRep.
func (f *frame) png() error {
	if _, err := f.take(8); err != nil {
		return err
	}
	for {
		b, err := f.take(8)
		if err != nil {
			return err
		}
		size, last := binary.BigEndian.Uint32(b), string(b[4:]) == "IEND"
		if int64(size) > int64(f.most) {
			return f.large()
		}
		if _, err := f.take(int(size) + 4); err != nil || last {
			return err
		}
	}
}

// gif takes blocks up to the trailer, https://www.w3.org/Graphics/GIF/spec-gif89a.txt.
func (f *frame) gif() error {
	b, err := f.take(13)
	if err != nil {
		return err
	}
	colours := func(flags byte) error { // a table of them
		if flags&0x80 == 0 {
			return nil
		}
		_, err := f.take(3 << (1 + flags&7))
		return err
	}
	if err := colours(b[10]); err != nil {
		return err
	}
	for {
		b, err := f.take(1)
		if err != nil {
			return err
		}
		switch b[0] {
		case 0x3b: // trailer
			return nil
		case 0x21: // extension: its label
			_, err = f.take(1)
		case 0x2c: // image
			if b, err = f.take(9); err == nil {
				err = colours(b[8])
			}
			if err == nil {
				_, err = f.take(1) // the least size of a code
			}
		default:
			return fmt.Errorf("broken image: a block of kind %#x", b[0])
		}
		for size := 1; err == nil && size > 0; { // sub-blocks
			if b, err = f.take(1); err == nil {
				size = int(b[0])
				_, err = f.take(size)
			}
		}
		if err != nil {
			return err
		}
	}
}

// webp takes as many bytes as the header says.
func (f *frame) webp(ctx context.Context) error {
	b, err := f.take(12)
	if err != nil {
		return err
	}
	if !isWebP(b) {
		return imageError(ctx, image.ErrFormat)
	}
	size := int64(binary.LittleEndian.Uint32(b[4:])) + 8
	if size < 12 || size > int64(f.most) {
		return fmt.Errorf("broken image: a size of %d bytes", size)
	}
	_, err = f.take(int(size) - 12)
	return err
}

// bmp takes as many bytes as the header says.
func (f *frame) bmp() error {
	b, err := f.take(6)
	if err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(b[2:])
	if size < 26 || int64(size) > int64(f.most) {
		return fmt.Errorf("broken image: a size of %d bytes", size)
	}
	_, err = f.take(int(size) - 6)
	return err
}
