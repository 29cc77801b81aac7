import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HeaderList } from '../../lib/http/header-list.ts'
import type { PathUse } from '../../modules/phases.ts'
import type { Route } from './compiled-edge.ts'
import { type Reserving, reservedPaths } from './reserved-paths.ts'

function reserving(id: string, path: string, claim: PathUse, match = '/'): Reserving {
  // Nothing else of a route is used.
  const route = { id } as Route
  return {
    matched: { matchType: 'path_prefix', match },
    route,
    phases: [{ reserves: [{ path, pathUse: ({ routeId }) => (routeId === id ? claim : 'none') }] }],
  }
}

const asked = (path: string) => ({
  host: 'app.example.com',
  path,
  query: '',
  headers: HeaderList.of([]),
  routeOf: () => undefined,
})

test('an edge whose modules reserve nothing has no such paths', () => {
  assert.equal(reservedPaths([{ ...reserving('r1', '/x', 'own'), phases: [{}] }]), undefined)
})

test('a module that owns a request comes before one that would answer it', () => {
  const paths = reservedPaths([reserving('r1', '/callback', 'spare', '/long/one'), reserving('r2', '/callback', 'own')])
  assert.equal(paths?.routeFor(asked('/callback'))?.id, 'r2')
})

test('the most specific route answers what belongs to none', () => {
  const paths = reservedPaths([reserving('r1', '/callback', 'spare'), reserving('r2', '/callback', 'spare', '/app')])
  assert.equal(paths?.routeFor(asked('/callback'))?.id, 'r2')
  assert.equal(reservedPaths([reserving('r1', '/callback', 'none')])?.routeFor(asked('/callback')), undefined)
})

test('a path may name its route, so that each has one of its own', () => {
  const paths = reservedPaths([
    reserving('r1', '/saml/{route}/acs', 'own'),
    reserving('r2', '/saml/{route}/acs', 'own'),
  ])
  assert.equal(paths?.has('/saml/{route}/acs'), false)
  for (const id of ['r1', 'r2']) assert.equal(paths?.routeFor(asked(`/saml/${id}/acs`))?.id, id)
  assert.equal(paths?.has('/saml/r3/acs'), false)
})
