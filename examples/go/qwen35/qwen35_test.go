package qwen35

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// model opens the folder that an environment variable names, or else the demo.
func model(t *testing.T, variable string) *Model {
	path := os.Getenv(variable)
	if path == "" {
		path = "../../demo-model"
	}
	m, err := Open(path, &ModelOptions{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

func session(t *testing.T, m *Model, limit uint64, sampling *Sampling) *Session {
	s, err := m.NewSession(&SessionOptions{ContextLimit: limit, Sampling: sampling})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

var hello = Chat{Messages: []Message{{Role: "user", Content: "hello"}}}

func TestTokens(t *testing.T) {
	m := model(t, "QWEN35_MODEL")
	for _, s := range []string{"", "hello world", "a\x00b", "Grüße \U0001F469"} {
		tokens, err := m.Tokenize(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := m.Detokenize(tokens, false)
		if err != nil || back != s {
			t.Fatalf("%q became %q, %v", s, back, err)
		}
	}
	if _, err := m.Tokenize("a\xff"); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Fatal(err)
	}
	added, err := m.TokenizeAdded("<|im_end|>")
	if err != nil || len(added) != 1 {
		t.Fatal(added, err)
	}
	rendered, err := m.RenderChat(hello)
	if err != nil || !strings.Contains(rendered, "hello") {
		t.Fatal(rendered, err)
	}
	if info, err := m.Info(); err != nil || !info.HasWeights || info.Threads != 1 {
		t.Fatal(info, err)
	}
}

func TestErrors(t *testing.T) {
	_, err := Open("/nowhere", nil)
	var failure *Error
	if !errors.As(err, &failure) || failure.Status != StatusIO || !strings.Contains(err.Error(), "/nowhere") {
		t.Fatal(err)
	}
	m := model(t, "QWEN35_MODEL")
	s := session(t, m, 0, nil)
	if _, _, err := s.Next(context.Background()); err == nil {
		t.Fatal("an empty sequence has no next token")
	}
	if err := s.Feed(context.Background(), []int32{-1}); err == nil {
		t.Fatal("-1 is no token")
	}
	s.Close()
	if err := s.Feed(context.Background(), []int32{1}); !errors.As(err, &failure) || failure.Status != StatusInvalidHandle {
		t.Fatal(err)
	}
	if _, err := s.Stream(context.Background(), 1, nil); err == nil {
		t.Fatal("a closed session streams")
	}
}

func TestStreams(t *testing.T) {
	ctx := context.Background()
	m := model(t, "QWEN35_MODEL")
	answer := func(seed uint64) string {
		s, err := m.NewSession(&SessionOptions{Sampling: &Sampling{Seed: &seed, LogitBias: map[int32]float32{3: -1}}})
		if err != nil {
			t.Error(err)
			return ""
		}
		defer s.Close()
		if _, computed, err := s.FeedChat(ctx, hello); err != nil || computed == 0 {
			t.Error(computed, err)
		}
		text := ""
		_, err = s.Stream(ctx, 12, func(piece string) error { text += piece; return nil })
		if err != nil {
			t.Error(err)
		}
		return text
	}
	// Many goroutines get what one gets alone.
	together := make([]string, 8)
	var wait sync.WaitGroup
	for i := range together {
		wait.Add(1)
		go func(i int) {
			defer wait.Done()
			together[i] = answer(uint64(i))
		}(i)
	}
	wait.Wait()
	for i, text := range together {
		if alone := answer(uint64(i)); alone != text {
			t.Fatalf("seed %d: %q, alone %q", i, text, alone)
		}
	}
	s := session(t, m, 0, Greedy())
	enough := errors.New("enough")
	s.FeedChat(ctx, hello)
	if _, err := s.Stream(ctx, 12, func(string) error { return enough }); err != enough {
		t.Fatal(err)
	}
	logits, err := s.Logits(ctx)
	if err != nil || len(logits) == 0 {
		t.Fatal(err)
	}
}

func TestContexts(t *testing.T) {
	s := session(t, model(t, "QWEN35_SLOW_MODEL"), 0, Greedy())
	long := make([]int32, 4000)
	for i := 0; i < 3; i++ {
		ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
		start := time.Now()
		var err error
		for err == nil {
			if err = s.Feed(ctx, long); err == nil {
				err = s.Reset()
			}
		}
		stop()
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 5*time.Second {
			t.Fatal(err, time.Since(start))
		}
		if err := s.Reset(); err != nil {
			t.Fatal(err)
		}
		// No cancel is left over.
		if err := s.Feed(context.Background(), []int32{1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	// A cancel that comes too late for its call does not hit the next one.
	for i := 0; i < 50; i++ {
		ctx, stop := context.WithTimeout(context.Background(), time.Duration(i)*40*time.Microsecond)
		s.Next(ctx)
		stop()
		if _, _, err := s.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	time.AfterFunc(30*time.Millisecond, s.Cancel)
	s.Reset()
	if err := s.Feed(context.Background(), long); err != nil && !errors.Is(err, ErrCancelled) {
		t.Fatal(err)
	}
}

func TestBusy(t *testing.T) {
	s := session(t, model(t, "QWEN35_SLOW_MODEL"), 0, Greedy())
	done := make(chan error)
	started := make(chan struct{})
	go func() {
		close(started)
		done <- s.Feed(context.Background(), make([]int32, 4000))
	}()
	<-started
	time.Sleep(20 * time.Millisecond)
	err := s.Feed(context.Background(), []int32{1})
	var failure *Error
	if err != nil && (!errors.As(err, &failure) || failure.Status != StatusBusy) {
		t.Fatal(err)
	}
	s.Close() // ends the call inside
	if err := <-done; err != nil && !errors.Is(err, ErrCancelled) {
		t.Fatal(err)
	}
}

// Go turns SIGSEGV into a panic by a handler of its own, also while the library computes.
func TestNilPointersAreStillPanics(t *testing.T) {
	s := session(t, model(t, "QWEN35_MODEL"), 0, Greedy())
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				s.Reset()
				if err := s.Feed(context.Background(), []int32{1, 2, 3, 4}); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for i := 0; i < 100; i++ {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a nil pointer was followed")
				}
			}()
			var m *Model
			m.handle = nil
		}()
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A conversation that does not fit loses its oldest turns, if that is asked for.
func TestOptions(t *testing.T) {
	ctx := context.Background()
	m, err := Open(os.Getenv("QWEN35_MODEL"), &ModelOptions{
		Threads: 1, Weights: WeightsINT8, Compute: ComputeExact, PrefixCacheBytes: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if info, err := m.Info(); err != nil || info.Weights != WeightsINT8 || info.Compute != ComputeExact {
		t.Fatal(info, err)
	}
	var chat Chat
	for i := 0; i < 20; i++ {
		chat.Messages = append(chat.Messages, Message{"user", "hello hello hello"}, Message{"assistant", "hello"})
	}
	chat.Messages = append(chat.Messages, Message{"user", "hello"})
	for _, drop := range []bool{false, true} {
		s, err := m.NewSession(&SessionOptions{
			ContextLimit: 200, CacheNamespace: 5, DropTurns: drop, MarkLimit: 2, KV: KVINT8,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		total, _, err := s.FeedChat(ctx, chat)
		var failure *Error
		if drop && (err != nil || total > 200) || !drop && (!errors.As(err, &failure) || failure.Status != StatusContextOverflow) {
			t.Fatal(drop, total, err)
		}
	}
	if _, err := Open(os.Getenv("QWEN35_MODEL"), &ModelOptions{Weights: 77}); err == nil {
		t.Fatal("an unknown format was taken")
	}
}

func TestConversations(t *testing.T) {
	ctx := context.Background()
	s := session(t, model(t, "QWEN35_MODEL"), 0, Greedy())
	talk, err := s.NewConversation(&ConversationOptions{
		System: "Be brief.", MaxTokens: 8, Thinking: Some(false), Stop: []string{"never", "ever"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	if err := talk.SendText(ctx, "hello"); err != nil {
		t.Fatal(err)
	}
	var piece Piece
	for piece.Kind != PieceEnd {
		if piece, err = talk.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if piece.Finish != FinishLength && piece.Finish != FinishEndOfTurn {
		t.Fatal(piece)
	}
	history, err := talk.History()
	if err != nil || !strings.Contains(history, "hello") {
		t.Fatal(history, err)
	}
	if piece.Finish == FinishLength {
		if err := talk.Resume(); err != nil {
			t.Fatal(err)
		}
		if _, err := talk.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := talk.Regenerate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := talk.Configure(&ConversationOptions{MaxTokens: 1}); err != nil {
		t.Fatal(err)
	}
	if err := talk.SetHistory(history); err != nil {
		t.Fatal(err)
	}
	if again, err := talk.History(); err != nil || again != history {
		t.Fatal(again, err)
	}
	if remaining, err := talk.Enqueue("more"); err != nil || remaining == 0 {
		t.Fatal(remaining, err)
	}
	pieces := 0
	for piece = (Piece{}); piece.Kind != PieceEnd; {
		if piece, err = talk.Step(ctx, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if piece.Kind == PieceText {
			pieces++
		}
	}
	if pieces == 0 || piece.Finish == 0 {
		t.Fatal(pieces, piece)
	}
	if err := talk.SetHistory(history); err != nil {
		t.Fatal(err)
	}
	if _, err := talk.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if removed, err := talk.Undo(); err != nil || removed != 2 {
		t.Fatal(removed, err)
	}
	said := ""
	finish, err := talk.Ask(ctx, "hello", func(piece string) error {
		said += piece
		return nil
	})
	if err != nil || finish == 0 {
		t.Fatal(said, finish, err)
	}
	s.Reset()
	s.Feed(ctx, []int32{1})
	if score, err := s.ScoreText(ctx, "hello"); err != nil || score.LogLikelihood >= 0 {
		t.Fatal(score, err)
	}
	if _, err := s.NewConversation(&ConversationOptions{Stop: []string{""}}); err == nil {
		t.Fatal("an empty stop text was taken")
	}
}
