package qwen35

/*
#include "qwen35.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"
)

// Enqueue appends tokens for Step to compute; it returns at once.
func (s *Session) Enqueue(tokens []int32) error {
	data, count := ids(tokens)
	return s.short(func() C.qwen_status { return C.qwen_session_enqueue(s.c(), data, count) })
}

// EnqueueChat does the same as FeedChat, but leaves what is not computed yet to Step. It gives
// the tokens of the conversation, and those that are still to be computed.
func (s *Session) EnqueueChat(chat Chat) (total, remaining int, err error) {
	request, err := json.Marshal(chat)
	if err != nil {
		return 0, 0, err
	}
	var all, left C.size_t
	data := (*C.char)(unsafe.Pointer(&request[0]))
	err = s.short(func() C.qwen_status {
		return C.qwen_session_enqueue_chat(s.c(), data, C.size_t(len(request)), 0, &all, &left)
	})
	return int(all), int(left), err
}

// Step goes on for about that long: with what is queued, then with the next token. For frame
// loops: call it once per frame until it is ready, which it is with a token or a full context.
// 0 is the smallest advance.
func (s *Session) Step(ctx context.Context, budget time.Duration) (token int32, stop Stop, ready bool, err error) {
	if budget < 0 {
		return 0, GoOn, false, fmt.Errorf("qwen35: a budget of %v", budget)
	}
	var id C.int32_t
	status, err := s.run(ctx, func() C.qwen_status {
		return C.qwen_session_step(s.c(), C.uint64_t(budget.Microseconds()), 0, &id, nil)
	})
	return int32(id), stopOf(status), err == nil && status != C.QWEN_WORKING, err
}

// Advance is what BatchStep came to for one session.
type Advance struct {
	Token int32 // if Stop is not Full and Err is nil
	Stop  Stop
	Err   error // of this session alone
}

// BatchStep advances sessions of one model by one token each, and reads the weights once for
// all. Each gets exactly the token that Next would give it; one that cannot go on says so in
// its place and does not disturb the others. When the context ends, all are cancelled.
func BatchStep(ctx context.Context, sessions []*Session) ([]Advance, error) {
	if err := ctx.Err(); err != nil || len(sessions) == 0 {
		return nil, err
	}
	count := len(sessions)
	handles := make([]*C.qwen_session, count)
	for i, s := range sessions {
		if handles[i] = s.c(); handles[i] == nil {
			return nil, errors.New("qwen35: a session of the batch is closed")
		}
	}
	tokens, statuses := make([]C.int32_t, count), make([]C.qwen_status, count)
	finished, watcher := make(chan struct{}), make(chan bool, 1)
	go func() {
		select {
		case <-ctx.Done():
			for _, s := range sessions {
				s.Cancel()
			}
			watcher <- true
		case <-finished:
			watcher <- false
		}
	}()
	_, err := do(func() C.qwen_status {
		return C.qwen_batch_step(&handles[0], C.size_t(count), &tokens[0], &statuses[0])
	})
	close(finished)
	asked := <-watcher
	runtime.KeepAlive(sessions)
	found := make([]Advance, count)
	for i, status := range statuses {
		found[i] = Advance{Token: int32(tokens[i]), Stop: stopOf(status)}
		switch {
		case status < 0:
			name := C.GoString(C.qwen_status_name(status))
			message := fmt.Sprintf("session %d of the batch", i)
			found[i].Err = &Error{Status: int32(status), Name: name, Message: message}
		case status == C.QWEN_CANCELLED && asked:
			found[i].Err = ctx.Err()
		case status == C.QWEN_CANCELLED:
			found[i].Err = ErrCancelled
		case asked:
			sessions[i].forget()
		}
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}
