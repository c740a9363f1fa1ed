//go:build !linux

package bitcnn

func newAlarm() alarm { return timerAlarm() }
