import assert from 'node:assert/strict'
import { test } from 'node:test'
import { methodsAt, routeTable } from './routes.ts'

const routes = routeTable()

const cases: [url: string, methods: string[]][] = [
  ['/api_keys', ['POST', 'GET']],
  ['/api_keys/', ['POST', 'GET']],
  ['//api_keys//', ['POST', 'GET']],
  ['/api_keys?limit=1', ['POST', 'GET']],
  ['/api_keys?/x/y', ['POST', 'GET']],
  ['/api%5Fkeys', ['POST', 'GET']],
  ['/api_keys/ak_1', ['GET', 'PATCH', 'DELETE']],
  ['/api_keys/%2F', ['GET', 'PATCH', 'DELETE']],
  ['/tunnels', ['GET']],
  ['/tunnel_sessions/ts_1/stop', ['POST']],
  ['/edges/https/x/routes/y/oidc', ['PUT', 'GET', 'DELETE']],
  ['/edges/https/x/routes', ['POST']],
  ['/API_KEYS', []],
  ['/api_keys/x/y', []],
  ['/', []],
  ['', []],
  ['/constructor', []],
  ['/__proto__', []],
  ['/{id}', []],
]

for (const [url, methods] of cases) {
  test(`\`${url}\` takes ${methods.join(', ') || 'nothing'}`, () => {
    assert.deepEqual(methodsAt(routes, url), methods)
  })
}
