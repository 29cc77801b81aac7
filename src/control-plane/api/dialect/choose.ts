/** Which dialect a request speaks: its version header says so. */
import type { IncomingMessage } from 'node:http'
import type { Dialect } from './api-dialect.ts'
import { ngrok } from './ngrok.ts'
import { own } from './own.ts'

/** D14a: with both version headers the vendor's decides, whatever it says; errors about it are spelled its way too. */
export function dialectOf({ headers }: Pick<IncomingMessage, 'headers'>): Dialect {
  return headers['ngrok-version'] === undefined ? own : ngrok
}
