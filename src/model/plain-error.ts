/** Errors as plain data, to cross from one plane to another; those that callers distinguish keep their class. */
import { BindRefusal } from './endpoint.ts'
import { type ErrorCode, errors, Refusal } from './errors.ts'

export interface PlainError {
  readonly kind: 'refusal' | 'bind_refusal' | 'error'
  readonly message: string
  readonly name?: string
  readonly code?: string
  readonly field?: string
  readonly reason?: string
  readonly headers?: Record<string, string>
  readonly ngrok?: number
  readonly isTaken?: boolean
}

export function plainError(error: unknown): PlainError {
  if (error instanceof Refusal) {
    const { code, message, field, reason, headers } = error
    return { kind: 'refusal', code, message, field, reason, headers: { ...headers } }
  }
  if (error instanceof BindRefusal) {
    const { ngrok, message, isTaken } = error
    return { kind: 'bind_refusal', ngrok, message, isTaken }
  }
  if (!(error instanceof Error)) return { kind: 'error', message: textOf(error) }
  const { name, message } = error
  const code = 'code' in error && error.code !== undefined ? { code: textOf(error.code) } : {}
  return { kind: 'error', name: textOf(name), message: textOf(message), ...code }
}

export function errorOf({ kind, message, code, ...more }: PlainError): Error {
  // A code that only a newer version knows becomes an internal error here.
  if (kind === 'refusal') return new Refusal(isErrorCode(code) ? code : 'INTERNAL', message, { ...more })
  if (kind === 'bind_refusal') return new BindRefusal(more.ngrok ?? 0, message, { isTaken: more.isTaken ?? false })
  return Object.assign(new Error(message), { ...(more.name && { name: more.name }), ...(code && { code }) })
}

export function isPlainError(given: unknown): given is PlainError {
  return typeof given === 'object' && given !== null && 'message' in given && typeof given.message === 'string'
}

function isErrorCode(code: string | undefined): code is ErrorCode {
  return code !== undefined && Object.hasOwn(errors, code)
}

/** Anything can be thrown, even values that cannot be converted to text. */
function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return 'a value that cannot be shown as text'
  }
}
