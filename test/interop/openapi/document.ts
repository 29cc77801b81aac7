/** The API document of a running server, and its operations. */
import assert from 'node:assert/strict'
import type { Json } from '../../support/api-client.ts'

export async function fetchDocument(url: string): Promise<Json> {
  const answer = await fetch(`${url}/openapi.json`)
  assert.equal(answer.status, 200)
  return answer.json()
}

export interface Operation {
  readonly method: string
  readonly path: string
  readonly operation: Json
}

export function operationsOf(document: Json): Operation[] {
  return Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    ['get', 'post', 'put', 'patch', 'delete']
      .filter((method) => item[method])
      .map((method) => ({ method: method.toUpperCase(), path, operation: item[method] })),
  )
}
