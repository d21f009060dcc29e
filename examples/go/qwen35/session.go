package qwen35

/*
#include <stdlib.h>
#include "qwen35.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// ErrCancelled is the outcome of a call that Session.Cancel ended.
var ErrCancelled = errors.New("qwen35: the call was cancelled")

// Session is a sequence being continued, used by one goroutine at a time.
type Session struct {
	handle  unsafe.Pointer // *C.qwen_session, nil when closed
	decoder *C.qwen_stream_decoder
}

func (s *Session) c() *C.qwen_session { return (*C.qwen_session)(atomic.LoadPointer(&s.handle)) }

// KV is how a session stores keys and values.
type KV int32

// The formats.
const (
	KVAuto KV = C.QWEN_KV_AUTO // KVFP32 for a model that computes exactly, else KVFP16
	KVFP32 KV = C.QWEN_KV_FP32 // as computed
	KVFP16 KV = C.QWEN_KV_FP16 // half the memory
	KVINT8 KV = C.QWEN_KV_INT8 // a quarter
)

// SessionOptions say how to make a session. The zero value is the default.
type SessionOptions struct {
	ContextLimit uint64    // the most tokens; 0: what the model was made for
	Sampling     *Sampling // nil: the default
	// Not 0: shares beginnings with the sessions that have the same number, through the model's
	// prefix cache.
	CacheNamespace uint64
	// A conversation that does not fit loses its oldest turns, and OverflowReserve tokens are kept
	// free (0: a quarter); else it is an error.
	DropTurns       bool
	OverflowReserve uint64
	MarkLimit       uint32 // most marks held; 0: 4
	KV              KV
}

// NewSession makes an empty session. Nil options are the default.
func (m *Model) NewSession(options *SessionOptions) (*Session, error) {
	if options == nil {
		options = &SessionOptions{}
	}
	raw := C.qwen_session_options{
		struct_size:      C.uint32_t(unsafe.Sizeof(C.qwen_session_options{})),
		context_limit:    C.uint64_t(options.ContextLimit),
		cache_namespace:  C.uint64_t(options.CacheNamespace),
		overflow_reserve: C.uint64_t(options.OverflowReserve),
		mark_limit:       C.uint32_t(options.MarkLimit),
		kv:               C.qwen_kv(options.KV),
	}
	if options.DropTurns {
		raw.overflow = C.QWEN_OVERFLOW_DROP_TURNS
	}
	var handle *C.qwen_session
	_, err := do(func() C.qwen_status { return C.qwen_session_new(m.c(), &raw, &handle) })
	if err != nil {
		return nil, err
	}
	s, err := own(m, handle)
	if err == nil && options.Sampling != nil {
		if err = s.SetSampling(options.Sampling); err != nil {
			s.Close()
			return nil, err
		}
	}
	return s, err
}

// own makes a Session that owns the handle.
func own(m *Model, handle *C.qwen_session) (*Session, error) {
	s := &Session{handle: unsafe.Pointer(handle)}
	runtime.SetFinalizer(s, (*Session).Close)
	_, err := do(func() C.qwen_status {
		return C.qwen_stream_decoder_new(m.c(), C.QWEN_TEXT_SKIP_SPECIAL, &s.decoder)
	})
	runtime.KeepAlive(m)
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close frees the session. A call in progress is cancelled.
func (s *Session) Close() {
	handle := atomic.SwapPointer(&s.handle, nil)
	if handle != nil {
		C.qwen_session_free((*C.qwen_session)(handle))
		C.qwen_stream_decoder_free(s.decoder)
	}
	runtime.SetFinalizer(s, nil)
}

// Cancel ends the call in progress, or the next one if none is. Any goroutine, any time.
func (s *Session) Cancel() { C.qwen_session_cancel(s.c()) }

// run makes a call that the context can end.
func (s *Session) run(ctx context.Context, call func() C.qwen_status) (C.qwen_status, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	defer runtime.KeepAlive(s)
	finished, watcher := make(chan struct{}), make(chan bool, 1)
	if ctx.Done() == nil {
		watcher <- false
	} else {
		go func() {
			select {
			case <-ctx.Done():
				s.Cancel()
				watcher <- true
			case <-finished:
				watcher <- false
			}
		}()
	}
	status, err := do(call)
	close(finished)
	asked := <-watcher
	if status == C.QWEN_CANCELLED {
		if asked {
			return status, ctx.Err()
		}
		return status, ErrCancelled
	}
	if asked {
		s.forget()
	}
	return status, err
}

// forget takes back a cancel that came after the end of its call.
func (s *Session) forget() { C.qwen_session_cancel_clear(s.c()) }

// Feed appends tokens and computes them.
func (s *Session) Feed(ctx context.Context, tokens []int32) error {
	data, count := ids(tokens)
	_, err := s.run(ctx, func() C.qwen_status { return C.qwen_session_feed(s.c(), data, count) })
	return err
}

// FeedText appends text, for plain continuation.
func (s *Session) FeedText(ctx context.Context, prompt string) error {
	data, length := text(prompt)
	_, err := s.run(ctx, func() C.qwen_status {
		return C.qwen_session_feed_text(s.c(), data, length, 0)
	})
	runtime.KeepAlive(prompt)
	return err
}

// FeedChat makes the session hold exactly this conversation, ready for the answer. Call it
// once per turn with all messages so far: what is held already is not computed again. It
// returns the number of tokens of the conversation, and of those that were computed.
func (s *Session) FeedChat(ctx context.Context, chat Chat) (total, computed int, err error) {
	request, err := json.Marshal(chat)
	if err != nil {
		return 0, 0, err
	}
	var all, new C.size_t
	data := (*C.char)(unsafe.Pointer(&request[0]))
	_, err = s.run(ctx, func() C.qwen_status {
		return C.qwen_session_feed_chat(s.c(), data, C.size_t(len(request)), 0, &all, &new)
	})
	return int(all), int(new), err
}

// Stop tells why there is no further token.
type Stop int

// Reasons to stop.
const (
	GoOn      Stop = iota // there is one
	EndOfTurn             // the token that was chosen ends the turn
	Full                  // the context is full: no token was chosen
	Enough                // Stream made as many as it was asked for
)

// Next chooses the next token.
func (s *Session) Next(ctx context.Context) (token int32, stop Stop, err error) {
	var id C.int32_t
	status, err := s.run(ctx, func() C.qwen_status {
		return C.qwen_session_next_token(s.c(), &id)
	})
	return int32(id), stopOf(status), err
}

func stopOf(status C.qwen_status) Stop {
	switch status {
	case C.QWEN_END_OF_TURN:
		return EndOfTurn
	case C.QWEN_LIMIT_REACHED:
		return Full
	}
	return GoOn
}

// Stream makes up to limit tokens and hands their text to piece, in whole characters. An error
// of piece ends it and is returned.
func (s *Session) Stream(ctx context.Context, limit int, piece func(string) error) (Stop, error) {
	if _, err := s.finish(); err != nil { // of a stream that was left
		return GoOn, err
	}
	stop := Enough
	for i := 0; i < limit; i++ {
		token, why, err := s.Next(ctx)
		if err != nil {
			return GoOn, err
		}
		if why != GoOn {
			stop = why
			break
		}
		part, err := s.borrowed(func(data **C.char, length *C.size_t) C.qwen_status {
			return C.qwen_stream_decoder_push(s.decoder, C.int32_t(token), data, length)
		})
		if err == nil && part != "" {
			err = piece(part)
		}
		if err != nil {
			return GoOn, err
		}
	}
	rest, err := s.finish()
	if err == nil && rest != "" {
		err = piece(rest)
	}
	return stop, err
}

func (s *Session) finish() (string, error) {
	return s.borrowed(func(data **C.char, length *C.size_t) C.qwen_status {
		return C.qwen_stream_decoder_finish(s.decoder, data, length)
	})
}

func (s *Session) borrowed(call func(**C.char, *C.size_t) C.qwen_status) (string, error) {
	if s.c() == nil {
		return "", errors.New("qwen35: the session is closed")
	}
	var data *C.char
	var length C.size_t
	_, err := do(func() C.qwen_status { return call(&data, &length) })
	defer runtime.KeepAlive(s)
	if err != nil {
		return "", err
	}
	return C.GoStringN(data, C.int(length)), nil
}

// Logits gives a copy of the logits of the token after the sequence.
func (s *Session) Logits(ctx context.Context) ([]float32, error) {
	var data *C.float
	var count C.size_t
	_, err := s.run(ctx, func() C.qwen_status { return C.qwen_session_logits(s.c(), &data, &count) })
	if err != nil {
		return nil, err
	}
	return append([]float32(nil), unsafe.Slice((*float32)(data), int(count))...), nil
}

// Tokens gives a copy of the sequence: all ids, fed and generated.
func (s *Session) Tokens() ([]int32, error) {
	var data *C.int32_t
	var count C.size_t
	_, err := do(func() C.qwen_status { return C.qwen_session_tokens(s.c(), &data, &count) })
	defer runtime.KeepAlive(s)
	if err != nil {
		return nil, err
	}
	return append([]int32(nil), unsafe.Slice((*int32)(data), int(count))...), nil
}

// Position is the length of the sequence.
func (s *Session) Position() (int, error) {
	var position C.size_t
	_, err := do(func() C.qwen_status { return C.qwen_session_position(s.c(), &position) })
	runtime.KeepAlive(s)
	return int(position), err
}

// Reset empties the sequence.
func (s *Session) Reset() error {
	_, err := do(func() C.qwen_status { return C.qwen_session_reset(s.c()) })
	runtime.KeepAlive(s)
	return err
}
