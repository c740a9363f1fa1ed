//go:build race

package bitcnn

const raceDetector = true
