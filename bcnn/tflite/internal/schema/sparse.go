package schema

import (
	"errors"
	"fmt"

	"github.com/bitcnn/bitcnn/bcnn/tflite/internal/flat"
)

// levelUnits is what is charged for a position of a level of a sparse tensor.
const levelUnits = 8

// level is a dimension of a sparse tensor, or one of its blocks, in the order in which its values
// are stored. Of a dense one all positions are, of another those that indices list: segments tell
// where those of each position of the level before begin.
type level struct {
	stride            int // in the tensor without its blocks
	size              int
	sparse            bool
	segments, indices integers
}

// integers is a vector of integers of 1, 2 or 4 bytes.
type integers struct {
	data []byte
	size int
}

func (v integers) len() int { return len(v.data) / v.size }

func (v integers) at(i int) int {
	n := 0
	for k := range v.size {
		n |= int(v.data[i*v.size+k]) << (8 * k)
	}
	if v.size == 4 {
		return int(int32(n))
	}
	return n
}

// integers reads a union: its type and a table with a vector.
func (m *Model) integers(t flat.Table, slot int, name string) (integers, error) {
	kind, table := t.Uint8(slot, 0), t.Table(slot+1, name)
	switch kind {
	case 1:
		return integers{table.Int32s(0), 4}, nil
	case 2:
		return integers{table.Uint16s(0), 2}, nil
	case 3:
		return integers{table.Bytes(0), 1}, nil
	}
	return integers{}, fmt.Errorf("its %s are of type %d, want 1 to 3", name, kind)
}

// Sparse reports whether a tensor does not have all its values in the file.
func (m *Model) Sparse(index int) bool { return !m.Graph.tensors.At(index).Empty(6) }

// Dense returns a sparse constant tensor with all its values, of at most so many bytes. Zeros that
// are not stored are bytes of 0.
func (m *Model) Dense(index int, most int64) (*Tensor, error) {
	if err := m.budget.Charge(tableUnits); err != nil {
		return nil, err
	}
	t, err := m.dense(index, most)
	if err == nil {
		err = m.buffer.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("tensor %d: %w", index, err)
	}
	return t, nil
}

func (m *Model) dense(index int, most int64) (*Tensor, error) {
	table := m.Graph.tensors.At(index).Tracked()
	sparsity := table.Table(6, "sparsity")
	t, err := m.tensorOf(table, index, true)
	if err != nil {
		return nil, err
	}
	if sparsity.Absent() || t.Data == nil {
		return nil, errors.New("it is no sparse constant")
	}
	size := t.Type.bytes()
	if size == 0 || len(t.Dims) == 0 || len(t.Data)%size != 0 {
		return nil, fmt.Errorf("a sparse tensor of %v with shape %v is not supported", t.Type, t.Dims)
	}
	levels, err := m.levels(sparsity, t)
	if err != nil {
		return nil, err
	}
	bytes := int64(size) * int64(t.Values())
	if bytes > most {
		return nil, fmt.Errorf("with its zeros it has %d bytes, at most %d are allowed; Limits.TensorBytes allows more", bytes, most)
	}
	if err := m.budget.Charge(bytes); err != nil {
		return nil, err
	}
	at, err := m.places(levels, len(t.Data)/size)
	if err != nil {
		return nil, err
	}
	data := make([]byte, bytes)
	for i, to := range at {
		copy(data[to*size:][:size], t.Data[i*size:])
	}
	t.Data = data
	return t, nil
}

// levels reads the levels of a sparse tensor.
func (m *Model) levels(s flat.Table, t *Tensor) ([]level, error) {
	order, blocked, list := s.Int32s(0), s.Int32s(1), s.Tables(2, "dimension")
	n := len(t.Dims)
	if order.Len() != n+blocked.Len() || list.Len() != order.Len() || blocked.Len() > n {
		return nil, fmt.Errorf("its %d dimensions, %d blocks and %d levels do not fit each other", n, blocked.Len(), list.Len())
	}
	if err := m.budget.Charge(tableUnits * int64(list.Len())); err != nil {
		return nil, err
	}
	strides := stridesOf(t.Dims)
	// Blocks come last, and are dense.
	size, seen := make([]int, n), make([]bool, order.Len())
	for i := range size {
		size[i] = 1 // of the block
	}
	out := make([]level, order.Len())
	for i := order.Len() - 1; i >= 0; i-- {
		d, table := int(order.At(i)), list.At(i)
		if d < 0 || d >= len(seen) || seen[d] || (d >= n) != (i >= n) {
			return nil, fmt.Errorf("its traversal order has %d at place %d", d, i)
		}
		seen[d] = true
		l := &out[i]
		if l.sparse = table.Uint8(0, 0) == 1; table.Uint8(0, 0) > 1 {
			return nil, fmt.Errorf("level %d has format %d, want 0 or 1", i, table.Uint8(0, 0))
		}
		if d >= n {
			of, said := int(blocked.At(d-n)), int(table.Int32(1, 0))
			if of < 0 || of >= n || size[of] != 1 || said < 1 || l.sparse || t.Dims[of]%said != 0 {
				return nil, fmt.Errorf("a block of %d along dimension %d does not fit shape %v", said, of, t.Dims)
			}
			size[of], l.size, l.stride = said, said, strides[of]
			continue
		}
		l.size, l.stride = t.Dims[d]/size[d], strides[d]*size[d]
		if err := m.readLevel(l, i, table); err != nil {
			return nil, err
		}
	}
	return out, m.buffer.Err()
}

// stridesOf returns how many values apart neighbours along each dimension are.
func stridesOf(dims []int) []int {
	strides := make([]int, len(dims))
	for i, stride := len(dims)-1, 1; i >= 0; i-- {
		strides[i] = stride
		stride *= dims[i]
	}
	return strides
}

// readLevel reads level i, one of a dimension: its segments and indices, or the number of its positions
// if it is dense, which must be l.size.
func (m *Model) readLevel(l *level, i int, table flat.Table) (err error) {
	if !l.sparse {
		if said := int(table.Int32(1, 0)); said != l.size {
			err = fmt.Errorf("level %d has %d positions, want %d", i, said, l.size)
		}
		return err
	}
	if l.segments, err = m.integers(table, 2, "segments"); err == nil {
		l.indices, err = m.integers(table, 4, "indices")
	}
	return err
}

// places returns where each of so many stored values is in the tensor.
func (m *Model) places(levels []level, values int) ([]int, error) {
	at := []int{0}
	for i, l := range levels {
		n := len(at) * l.size
		if l.sparse {
			n = l.indices.len()
			if l.segments.len() != len(at)+1 || l.segments.at(0) != 0 || l.segments.at(len(at)) != n {
				return nil, fmt.Errorf("the %d segments of level %d do not fit %d positions with %d indices", l.segments.len(), i, len(at), n)
			}
		}
		if err := m.budget.Charge(levelUnits * int64(n)); err != nil {
			return nil, err
		}
		next := make([]int, 0, n)
		for p, base := range at {
			from, to := p*l.size, (p+1)*l.size
			if l.sparse {
				from, to = l.segments.at(p), l.segments.at(p+1)
			}
			if from < 0 || to < from || to > n {
				return nil, fmt.Errorf("a segment of level %d goes from %d to %d", i, from, to)
			}
			last := -1
			for k := from; k < to; k++ {
				c := k - from
				if l.sparse {
					c = l.indices.at(k)
				}
				if c <= last || c >= l.size {
					return nil, fmt.Errorf("index %d of level %d is out of order, or not below %d", c, i, l.size)
				}
				last = c
				next = append(next, base+c*l.stride)
			}
		}
		at = next
	}
	if len(at) != values {
		return nil, fmt.Errorf("it has %d values, want %d", values, len(at))
	}
	return at, nil
}
