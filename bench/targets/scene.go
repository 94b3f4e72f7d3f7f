// The scene for Go's fgprof, which samples the program that it is part of: what scene.c, spin.c and
// sleepers.c do for the other tools, in goroutines. On the line "start" it begins to profile; on
// "stop" it ends and adds the profile to its answer, as folded stacks. On an empty line it answers
// as spin.c does, with the number of calls that returned early.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/felixge/fgprof"
)

const (
	gapMinNs      = 5000
	stepsPerChunk = 100
	bucketBits    = 5 // as in spin.c
)

var (
	begin         = time.Now()
	chunks, gapNs int64
	gaps          [64 << bucketBits]int64
	early         int64
	mutex         sync.Mutex
	owned         = make(chan bool)
	never         = make(chan bool)
	stepped       uint64
)

//go:noinline
func runningInner() {
	state, before := uint64(1), time.Since(begin)
	for {
		for i := 0; i < stepsPerChunk; i++ {
			state = state*6364136223846793005 + 1442695040888963407
		}
		after := time.Since(begin)
		if gap := uint64(after - before); gap > gapMinNs {
			power := uint(bits.Len64(gap)) - 1
			bucket := power<<bucketBits | uint(gap>>(power-bucketBits))&31
			atomic.AddInt64(&gaps[bucket], 1)
			atomic.AddInt64(&gapNs, int64(gap))
		}
		atomic.AddInt64(&chunks, 1)
		before = after
		stepped = state
	}
}

//go:noinline
func runningOuter() { runningInner() }

//go:noinline
func dozingInner() {
	for {
		time.Sleep(20 * time.Millisecond)
	}
}

//go:noinline
func dozingOuter() { dozingInner() }

//go:noinline
func asleepInner() { <-never }

//go:noinline
func asleepOuter() { asleepInner() }

//go:noinline
func ownerInner() {
	mutex.Lock()
	owned <- true
	<-never
}

//go:noinline
func ownerOuter() { ownerInner() }

//go:noinline
func blockedInner() { mutex.Lock() }

//go:noinline
func blockedOuter() { blockedInner() }

// Counts how often epoll_wait returns, although no event ends it.
func inEpollWait() {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		panic(err)
	}
	for {
		var event syscall.EpollEvent
		syscall.Syscall6(syscall.SYS_EPOLL_WAIT, uintptr(fd), uintptr(unsafe.Pointer(&event)), 1,
			3600*1000, 0, 0)
		atomic.AddInt64(&early, 1)
	}
}

func main() {
	go runningOuter()
	go dozingOuter()
	go asleepOuter()
	go ownerOuter()
	<-owned
	go blockedOuter()
	go inEpollWait()

	var profile bytes.Buffer
	var stop func() error
	input, output := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	os.Stdout.WriteString("ready\n")
	for input.Scan() {
		answer := map[string]interface{}{}
		switch input.Text() {
		case "start":
			profile.Reset()
			stop = fgprof.Start(&profile, fgprof.FormatFolded)
		case "stop":
			if err := stop(); err != nil {
				panic(err)
			}
			answer["profile"] = profile.String()
		default:
			counts := map[int]int64{}
			for bucket := range gaps {
				if count := atomic.LoadInt64(&gaps[bucket]); count > 0 {
					counts[bucket] = count
				}
			}
			answer["ns"] = int64(time.Since(begin))
			answer["chunks"] = atomic.LoadInt64(&chunks)
			answer["gap_ns"] = atomic.LoadInt64(&gapNs)
			answer["gaps"] = counts
			answer["early"] = atomic.LoadInt64(&early)
		}
		output.Encode(answer)
	}
}
