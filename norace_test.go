//go:build !race

package bitcnn

const raceDetector = false
