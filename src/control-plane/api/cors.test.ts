import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FastifyRequest } from 'fastify'
import { isPreflight } from './cors.ts'

const ask = { origin: 'https://page.example.com', 'access-control-request-method': 'PUT' }

const cases: [what: string, method: string, headers: object, isOne: boolean][] = [
  ['OPTIONS with an origin and a method', 'OPTIONS', ask, true],
  ['OPTIONS with a key as well', 'OPTIONS', { ...ask, authorization: 'Bearer x' }, true],
  ['OPTIONS without an origin', 'OPTIONS', { 'access-control-request-method': 'PUT' }, false],
  ['OPTIONS without a method', 'OPTIONS', { origin: ask.origin }, false],
  ['a real request that pretends', 'DELETE', ask, false],
  ['a read that pretends', 'GET', ask, false],
]

for (const [what, method, headers, isOne] of cases) {
  test(`${what} ${isOne ? 'is' : 'is not'} a preflight, which alone passes the door without a key`, () => {
    // Only these two are read.
    assert.equal(isPreflight({ method, headers } as FastifyRequest), isOne)
  })
}
