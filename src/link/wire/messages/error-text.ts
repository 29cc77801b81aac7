/** Errors in answers: one text, for people to read and for SDKs to find a code in. */
import type { Message } from '../agent-rpc.ts'
import type { WireError } from '../wire-error.ts'
import { MessageFields } from './message-fields.ts'

/** A text that SDKs can parse: they look for the code on a separate line. */
export function errorText(message: string, code: string): string {
  return `${message}\n\n${code}\n`
}

/** The message and the code of such a text; `code` is `''` when it has none. */
export function readErrorText(text: string): { message: string; code: string } {
  const lines = text.split('\n').map((line) => line.trim())
  const code = lines.find((line) => codeLine.test(line)) ?? ''
  return { message: lines.filter((line) => line !== '' && line !== code).join('\n'), code }
}

const codeLine = /^ERR_[A-Z0-9_]+$/

/** An answer that contains only an error; `''` for success. */
export function buildAnswer(error = ''): Message {
  return { Error: error }
}

export function parseAnswer(message: Message): { error: string } | WireError {
  return MessageFields.parse(message, (fields) => ({ error: fields.text('Error') }))
}
