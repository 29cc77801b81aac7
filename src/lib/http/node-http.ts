/**
 * `node:http` for those who start often. An `import` of it makes Node read everything that it exports, and among that is
 * a WebSocket, which loads the whole client behind `fetch`: 40 ms of CPU at every start.
 */
import type * as Http from 'node:http'

export const { createServer, request, STATUS_CODES }: typeof Http = process.getBuiltinModule('node:http')
