//go:build cgo && (linux || (windows && amd64))

package main

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bitcnn/bitcnn"
)

func TestTable(t *testing.T) {
	objects := table[int]{kind: 3, what: "thing"}
	_, err := objects.get(0)
	require.EqualError(t, err, "not a thing: the number is 0")
	_, err = objects.take(1)
	require.EqualError(t, err, "0x1 is not a thing")
	seen := map[uint64]bool{}
	for range 50 {
		numbers := map[uint64]*int{}
		for i := range 10 {
			value := &i
			number, err := objects.add(value)
			require.NoError(t, err)
			require.False(t, seen[number])
			seen[number], numbers[number] = true, value
		}
		for number, value := range numbers {
			got, err := objects.get(number)
			require.NoError(t, err)
			require.Same(t, value, got)
			for _, wrong := range []uint64{number ^ 1<<63, number + 1<<usedShift, number | placeMask} {
				_, err = objects.get(wrong)
				require.ErrorContains(t, err, " is not a thing")
			}
			got, err = objects.take(number)
			require.NoError(t, err)
			require.Same(t, value, got)
		}
		for number := range seen {
			_, err := objects.get(number)
			require.ErrorIs(t, err, bitcnn.ErrClosed)
			_, err = objects.take(number)
			require.EqualError(t, err, "the thing is closed")
		}
	}
	require.Len(t, *objects.places.Load(), 10) // they are used again

	// A place is given up when its numbers have been used up.
	last, err := objects.add(new(int))
	require.NoError(t, err)
	objects.find(last).used = usedMost - 1
	_, err = objects.take(last)
	require.NoError(t, err)
	last, err = objects.add(new(int)) // in the place that is free since last
	require.NoError(t, err)
	_, err = objects.take(last)
	require.NoError(t, err)
	for range 20 {
		number, err := objects.add(new(int))
		require.NoError(t, err)
		require.NotEqual(t, last&placeMask, number&placeMask)
	}
}

// Each object is found until it is taken, and taken once.
func TestTableConcurrently(t *testing.T) {
	objects := table[int]{kind: 3, what: "thing"}
	numbers := make(chan uint64, 8000)
	var all sync.WaitGroup
	var mu sync.Mutex
	taken := map[uint64]int{}
	for g := range 8 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range 1000 {
				number, err := objects.add(&g)
				if err != nil {
					t.Error(err)
				}
				if value, err := objects.get(number); err != nil || value != &g {
					t.Errorf("%#x: %v", number, err)
				}
				numbers <- number
				if random.IntN(2) == 0 {
					continue
				}
				number = <-numbers
				if _, err := objects.take(number); err == nil {
					mu.Lock()
					taken[number]++
					mu.Unlock()
				} else {
					t.Error(err)
				}
				if _, err := objects.get(number); err == nil {
					t.Errorf("%#x is still there", number)
				}
			}
		})
	}
	all.Wait()
	for number, times := range taken {
		require.Equal(t, 1, times, number)
	}
}
