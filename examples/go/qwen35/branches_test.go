package qwen35

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

var background = context.Background()

// made gives six tokens more.
func made(t *testing.T, s *Session) []int32 {
	t.Helper()
	var tokens []int32
	for i := 0; i < 6; i++ {
		token, _, err := s.Next(background)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	return tokens
}

func same(t *testing.T, what string, found, expected []int32) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("%s: %v, not %v", what, found, expected)
	}
}

func TestBranches(t *testing.T) {
	m := model(t, "QWEN35_MODEL")
	seed := uint64(3)
	s := session(t, m, 0, &Sampling{Seed: &seed})
	if err := s.Feed(background, []int32{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	fork, err := s.Fork(m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fork.Close)
	mark, err := s.Mark()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "saved")
	if err := s.Save(file); err != nil {
		t.Fatal(err)
	}
	state, err := s.SaveBytes()
	if err != nil {
		t.Fatal(err)
	}
	expected := made(t, s)
	same(t, "fork", made(t, fork), expected)
	if err := s.Rewind(mark, true); err != nil {
		t.Fatal(err)
	}
	same(t, "rewound", made(t, s), expected)
	if computed, err := s.Truncate(background, 5); err != nil || computed != 2 {
		t.Fatal(computed, err)
	}
	other := session(t, m, 0, nil)
	if err := other.Restore(file); err != nil {
		t.Fatal(err)
	}
	same(t, "restored", made(t, other), expected)
	if err := other.RestoreBytes(state); err != nil {
		t.Fatal(err)
	}
	same(t, "restored from memory", made(t, other), expected)
	var failure *Error
	for _, bad := range [][]byte{nil, state[:len(state)-1]} {
		if err := other.RestoreBytes(bad); !errors.As(err, &failure) || failure.Status != StatusFormat {
			t.Fatal(err)
		}
	}
	if err := s.Unmark(mark); err != nil {
		t.Fatal(err)
	}
	if err := s.Rewind(mark, false); err == nil {
		t.Fatal("a mark that was dropped")
	}
	if found, err := other.Statistics(); err != nil || found.OutputTokens != 12 || found.Bytes == 0 {
		t.Fatal(found, err)
	}
	if found, err := m.Statistics(); err != nil || found.Sessions != 3 || found.InputTokens < 3 {
		t.Fatal(found, err)
	}
}

func TestSteps(t *testing.T) {
	m := model(t, "QWEN35_MODEL")
	s, whole := session(t, m, 0, Greedy()), session(t, m, 0, Greedy())
	if _, _, err := whole.FeedChat(background, hello); err != nil {
		t.Fatal(err)
	}
	expected, _, err := whole.Next(background)
	if err != nil {
		t.Fatal(err)
	}
	if total, remaining, err := s.EnqueueChat(hello); err != nil || remaining == 0 || remaining > total {
		t.Fatal(total, remaining, err)
	}
	working := 0
	for {
		token, _, ready, err := s.Step(background, 0)
		if err != nil {
			t.Fatal(err)
		}
		if ready {
			same(t, "steps", []int32{token}, []int32{expected})
			break
		}
		working++
	}
	if working < 3 {
		t.Fatal(working)
	}
	if err := s.Enqueue([]int32{1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, _, ready, err := s.Step(background, time.Minute); err != nil || !ready {
		t.Fatal(ready, err)
	}
	if _, _, _, err := s.Step(background, -1); err == nil {
		t.Fatal("a negative budget")
	}
}

func TestBatches(t *testing.T) {
	m := model(t, "QWEN35_MODEL")
	var sessions []*Session
	var alone [][]int32
	for n := uint64(0); n < 3; n++ {
		seed := n
		s := session(t, m, 0, &Sampling{Seed: &seed})
		if err := s.Feed(background, make([]int32, n+1)); err != nil {
			t.Fatal(err)
		}
		fork, err := s.Fork(m)
		if err != nil {
			t.Fatal(err)
		}
		alone = append(alone, made(t, fork))
		fork.Close()
		sessions = append(sessions, s)
	}
	together := make([][]int32, 3)
	for i := 0; i < 6; i++ {
		found, err := BatchStep(background, sessions)
		if err != nil {
			t.Fatal(err)
		}
		for n := range found {
			if found[n].Err != nil {
				t.Fatal(found[n].Err)
			}
			together[n] = append(together[n], found[n].Token)
		}
	}
	for n := range alone {
		same(t, "batch", together[n], alone[n])
	}
	sessions[1].Cancel()
	found, err := BatchStep(background, []*Session{sessions[0], sessions[1], session(t, m, 0, nil)})
	if err != nil || found[0].Err != nil || found[1].Err != ErrCancelled || found[2].Err == nil {
		t.Fatal(found, err)
	}
	if _, err := BatchStep(background, []*Session{sessions[0], session(t, model(t, "QWEN35_MODEL"), 0, nil)}); err == nil {
		t.Fatal("sessions of two models")
	}
	ended, stop := context.WithCancel(background)
	stop()
	if _, err := BatchStep(ended, sessions); err != context.Canceled {
		t.Fatal(err)
	}
	sessions[2].Close()
	if _, err := BatchStep(background, sessions); err == nil {
		t.Fatal("a closed session")
	}
}
