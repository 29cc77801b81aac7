/** `node:http` for programs that start often. */
import type * as Http from 'node:http'

/**
 * An `import` of it would make Node read all its exports, among them a WebSocket, which loads the whole client behind
 * `fetch`: 40 ms of CPU at every start.
 */
export const { createServer, request, STATUS_CODES }: typeof Http = process.getBuiltinModule('node:http')
