/** Our own dialect: everything as the contract writes it. */
import type { Dialect } from './api-dialect.ts'

export const own: Dialect = {
  operationHeaders: ['service-operation-id'],
  queryAliases: new Map(),
  ignoresEmptyQuery: false,
  errorCode: ({ code }) => `ERR_${code}`,
  readBody: (_route, body) => body,
  showsSpellings: false,
  answer: (_route, answer) => answer,
}
