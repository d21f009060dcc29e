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
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// ConversationOptions say how a conversation is held. The zero value is the default.
type ConversationOptions struct {
	System         string
	Tools          []json.RawMessage // as in the OpenAI API
	Thinking       *bool             // nil: as the template has it
	ThinkingBudget uint32            // 0: no limit
	MaxTokens      uint32            // of a reply; 0: no limit
	Stop           []string          // texts at which an answer ends
}

// PieceKind is what a piece of a reply is.
type PieceKind int32

// The kinds.
const (
	PieceThinking PieceKind = C.QWEN_PIECE_THINKING
	PieceText     PieceKind = C.QWEN_PIECE_TEXT
	PieceToolCall PieceKind = C.QWEN_PIECE_TOOL_CALL
	PieceEnd      PieceKind = C.QWEN_PIECE_END
)

// Finish is why a reply ended.
type Finish int32

// The reasons.
const (
	FinishEndOfTurn   Finish = C.QWEN_FINISH_END_OF_TURN
	FinishToolCalls   Finish = C.QWEN_FINISH_TOOL_CALLS
	FinishStop        Finish = C.QWEN_FINISH_STOP
	FinishLength      Finish = C.QWEN_FINISH_LENGTH
	FinishContextFull Finish = C.QWEN_FINISH_CONTEXT_FULL
	FinishCancelled   Finish = C.QWEN_FINISH_CANCELLED
)

// Piece is a piece of a reply. A tool call that is not whole must not be carried out.
type Piece struct {
	Kind      PieceKind
	Finish    Finish // of the end
	Text      string
	Name      string          // of a tool call
	Arguments json.RawMessage // of a tool call, typed by the tool's schema
	ID        string          // of a tool call
	Problem   string          // of a tool call, empty if it is proper
	IsWhole   bool
}

// Conversation is messages, and the session that computes the replies.
type Conversation struct {
	handle  unsafe.Pointer // *C.qwen_conversation, nil when closed
	session *Session
}

func (t *Conversation) c() *C.qwen_conversation {
	return (*C.qwen_conversation)(atomic.LoadPointer(&t.handle))
}

// with calls with the options as C has them, in memory of C: memory of Go must not point to
// memory of Go when C gets it. It is lent for the call.
func (options *ConversationOptions) with(call func(*C.qwen_conversation_options) C.qwen_status) error {
	var owned []unsafe.Pointer
	defer func() {
		for _, memory := range owned {
			C.free(memory)
		}
	}()
	lend := func(s string) (*C.char, C.size_t) {
		memory := C.CBytes(append([]byte(s), 0))
		owned = append(owned, memory)
		return (*C.char)(memory), C.size_t(len(s))
	}
	raw := C.qwen_conversation_options{struct_size: C.uint32_t(unsafe.Sizeof(C.qwen_conversation_options{}))}
	if options != nil {
		raw.thinking_budget = C.uint32_t(options.ThinkingBudget)
		raw.max_tokens = C.uint32_t(options.MaxTokens)
		if options.Thinking != nil {
			raw.thinking = C.QWEN_THINKING_OFF
			if *options.Thinking {
				raw.thinking = C.QWEN_THINKING_ON
			}
		}
		if options.System != "" {
			raw.system, raw.system_length = lend(options.System)
		}
		if options.Tools != nil {
			tools, err := json.Marshal(options.Tools)
			if err != nil {
				return err
			}
			raw.tools, raw.tools_length = lend(string(tools))
		}
		if count := len(options.Stop); count > 0 {
			texts := C.malloc(C.size_t(count) * C.size_t(unsafe.Sizeof(uintptr(0))))
			lengths := C.malloc(C.size_t(count) * C.size_t(unsafe.Sizeof(C.size_t(0))))
			owned = append(owned, texts, lengths)
			for i, stop := range options.Stop {
				unsafe.Slice((**C.char)(texts), count)[i], unsafe.Slice((*C.size_t)(lengths), count)[i] = lend(stop)
			}
			raw.stop, raw.stop_lengths = (**C.char)(texts), (*C.size_t)(lengths)
			raw.stop_count = C.uint32_t(count)
		}
	}
	_, err := do(func() C.qwen_status { return call(&raw) })
	return err
}

// NewConversation makes a conversation over the session. Nil options are the default.
func (s *Session) NewConversation(options *ConversationOptions) (*Conversation, error) {
	var handle *C.qwen_conversation
	err := options.with(func(raw *C.qwen_conversation_options) C.qwen_status {
		return C.qwen_conversation_new(s.c(), raw, &handle)
	})
	runtime.KeepAlive(s)
	if err != nil {
		return nil, err
	}
	t := &Conversation{handle: unsafe.Pointer(handle), session: s}
	runtime.SetFinalizer(t, (*Conversation).Close)
	return t, nil
}

// Close frees the conversation; the session stays.
func (t *Conversation) Close() {
	C.qwen_conversation_free((*C.qwen_conversation)(atomic.SwapPointer(&t.handle, nil)))
	runtime.SetFinalizer(t, nil)
}

// Add adds messages without having them answered yet.
func (t *Conversation) Add(messages ...Message) error {
	data, err := json.Marshal(messages)
	if err != nil {
		return err
	}
	place := (*C.char)(unsafe.Pointer(&data[0]))
	_, err = do(func() C.qwen_status {
		return C.qwen_conversation_add(t.c(), place, C.size_t(len(data)))
	})
	runtime.KeepAlive(t)
	return err
}

// AddToolResult adds the result of a tool call; Send has it answered.
func (t *Conversation) AddToolResult(id, result string) error {
	name, length := text(id)
	data, size := text(result)
	_, err := do(func() C.qwen_status {
		return C.qwen_conversation_add_tool_result(t.c(), name, length, data, size)
	})
	runtime.KeepAlive(t)
	runtime.KeepAlive(id)
	runtime.KeepAlive(result)
	return err
}

// Send starts the reply to all messages so far.
func (t *Conversation) Send(ctx context.Context) error {
	_, err := t.session.run(ctx, func() C.qwen_status {
		return C.qwen_conversation_send(t.c(), nil, 0, nil, nil)
	})
	runtime.KeepAlive(t)
	return err
}

// SendText adds a user's message and starts the reply.
func (t *Conversation) SendText(ctx context.Context, message string) error {
	data, length := text(message)
	_, err := t.session.run(ctx, func() C.qwen_status {
		return C.qwen_conversation_send_text(t.c(), data, length, nil, nil)
	})
	runtime.KeepAlive(t)
	runtime.KeepAlive(message)
	return err
}

// Next makes the reply's next piece. After its end there are none but PieceEnd.
func (t *Conversation) Next(ctx context.Context) (Piece, error) {
	raw := C.qwen_piece{struct_size: C.uint32_t(unsafe.Sizeof(C.qwen_piece{}))}
	_, err := t.session.run(ctx, func() C.qwen_status {
		return C.qwen_conversation_next(t.c(), &raw)
	})
	defer runtime.KeepAlive(t)
	if err != nil {
		return Piece{}, err
	}
	return pieceOf(&raw), nil
}

// Enqueue does the same as SendText, but computes nothing: Step does that. It gives how many tokens
// there are to compute.
func (t *Conversation) Enqueue(message string) (remaining int, err error) {
	var left C.size_t
	data, length := text(message)
	_, err = do(func() C.qwen_status {
		return C.qwen_conversation_enqueue_text(t.c(), data, length, nil, &left)
	})
	runtime.KeepAlive(t)
	runtime.KeepAlive(message)
	return int(left), err
}

// Step goes on with the reply for about that long. For frame loops: call it once per frame until it
// gives PieceEnd. The kind of the piece is 0 if there is none yet.
func (t *Conversation) Step(ctx context.Context, budget time.Duration) (Piece, error) {
	if budget < 0 {
		return Piece{}, fmt.Errorf("qwen35: a budget of %v", budget)
	}
	raw := C.qwen_piece{struct_size: C.uint32_t(unsafe.Sizeof(C.qwen_piece{}))}
	_, err := t.session.run(ctx, func() C.qwen_status {
		return C.qwen_conversation_step(t.c(), C.uint64_t(budget.Microseconds()), &raw, nil)
	})
	defer runtime.KeepAlive(t)
	if err != nil {
		return Piece{}, err
	}
	return pieceOf(&raw), nil
}

func pieceOf(raw *C.qwen_piece) Piece {
	piece := Piece{
		Kind:    PieceKind(raw.kind),
		Finish:  Finish(raw.finish),
		Text:    C.GoStringN(raw.text, C.int(raw.text_length)),
		Name:    C.GoStringN(raw.name, C.int(raw.name_length)),
		ID:      C.GoStringN(raw.id, C.int(raw.id_length)),
		Problem: C.GoStringN(raw.problem, C.int(raw.problem_length)),
		IsWhole: raw.is_whole != 0,
	}
	if raw.arguments_length > 0 {
		piece.Arguments = C.GoBytes(unsafe.Pointer(raw.arguments), C.int(raw.arguments_length))
	}
	return piece
}

// Ask sends a user's message and hands the text of the answer to piece. An error of piece ends it
// and is returned.
func (t *Conversation) Ask(ctx context.Context, message string, piece func(string) error) (Finish, error) {
	if err := t.SendText(ctx, message); err != nil {
		return 0, err
	}
	for {
		part, err := t.Next(ctx)
		if err != nil || part.Kind == PieceEnd {
			return part.Finish, err
		}
		if part.Kind == PieceText {
			if err := piece(part.Text); err != nil {
				return 0, err
			}
		}
	}
}

// Configure goes on by other options from the next reply on.
func (t *Conversation) Configure(options *ConversationOptions) error {
	err := options.with(func(raw *C.qwen_conversation_options) C.qwen_status {
		return C.qwen_conversation_configure(t.c(), raw)
	})
	runtime.KeepAlive(t)
	return err
}

// Regenerate drops the last reply and starts another one.
func (t *Conversation) Regenerate(ctx context.Context) error {
	_, err := t.session.run(ctx, func() C.qwen_status {
		return C.qwen_conversation_regenerate(t.c(), nil, nil)
	})
	runtime.KeepAlive(t)
	return err
}

// Settle computes now, while the user reads and types, what the next message would wait for. It
// gives how many tokens that were.
func (t *Conversation) Settle(ctx context.Context) (int, error) {
	var computed C.size_t
	_, err := t.session.run(ctx, func() C.qwen_status {
		return C.qwen_conversation_settle(t.c(), nil, &computed)
	})
	runtime.KeepAlive(t)
	return int(computed), err
}

// Resume goes on with a reply that ended by its length or was cancelled.
func (t *Conversation) Resume() error {
	_, err := do(func() C.qwen_status { return C.qwen_conversation_resume(t.c()) })
	runtime.KeepAlive(t)
	return err
}

// SetHistory replaces all messages, as JSON.
func (t *Conversation) SetHistory(messages string) error {
	data, length := text(messages)
	_, err := do(func() C.qwen_status { return C.qwen_conversation_set_history(t.c(), data, length) })
	runtime.KeepAlive(t)
	runtime.KeepAlive(messages)
	return err
}

// Undo takes the last turn back and tells how many messages that were.
func (t *Conversation) Undo() (int, error) {
	var removed C.size_t
	_, err := do(func() C.qwen_status { return C.qwen_conversation_undo(t.c(), &removed) })
	runtime.KeepAlive(t)
	return int(removed), err
}

// History is the messages so far, as JSON.
func (t *Conversation) History() (string, error) {
	if t.c() == nil {
		return "", errors.New("qwen35: the conversation is closed")
	}
	defer runtime.KeepAlive(t)
	return sizedText(func(to *C.char, room C.size_t, needed *C.size_t) C.qwen_status {
		return C.qwen_conversation_history(t.c(), to, room, needed)
	})
}

// Score is how likely a text is.
type Score struct {
	LogLikelihood, Perplexity float64
	Tokens, Best              int
}

// ScoreText tells how likely a text is after the sequence, which must not be empty. The
// session stays as it is.
func (s *Session) ScoreText(ctx context.Context, judged string) (Score, error) {
	raw := C.qwen_score{struct_size: C.uint32_t(unsafe.Sizeof(C.qwen_score{}))}
	data, length := text(judged)
	_, err := s.run(ctx, func() C.qwen_status {
		return C.qwen_session_score_text(s.c(), data, length, 0, &raw)
	})
	runtime.KeepAlive(judged)
	return Score{
		LogLikelihood: float64(raw.log_likelihood), Perplexity: float64(raw.perplexity),
		Tokens: int(raw.token_count), Best: int(raw.best_count),
	}, err
}
