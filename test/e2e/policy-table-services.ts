/** The services that actions of the table call: one that answers, one with keys, and a login provider. */
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { exportJWK, SignJWT } from 'jose'
import type { World } from './edges/world.ts'
import type { Around } from './policy-table.ts'

/** Listens on a port of its own until the world closes. */
export async function listenOn(world: World, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  world.after(() => server.close())
  return (server.address() as AddressInfo).port
}

export async function askedServices(world: World): Promise<Omit<Around, 'mark'>> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...(await exportJWK(publicKey)), kid: 'a', use: 'sig', alg: 'ES256' }
  let origin = ''
  const server = createServer((request, response) => {
    const json = (value: unknown): void => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(value))
    }
    if (request.url === '/keys') json({ keys: [jwk] })
    else if (request.url === '/.well-known/openid-configuration') {
      const endpoints = ['authorization_endpoint', 'token_endpoint', 'jwks_uri']
      const addresses = ['/auth', '/token', '/keys'].map((path, i) => [endpoints[i], origin + path])
      json({ issuer: origin, ...Object.fromEntries(addresses), response_types_supported: ['code'] })
    } else {
      if (request.url === '/no') response.statusCode = 401
      void text(request).then((body) => response.end(`said ${request.url}${body === '' ? '' : ` ${body}`}`))
    }
  })
  origin = `http://127.0.0.1:${await listenOn(world, server)}`
  const token = await new SignJWT({ sub: 'ada' })
    .setProtectedHeader({ alg: 'ES256', kid: 'a' })
    .setIssuer(origin)
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey)
  return { asked: origin, keys: `${origin}/keys`, issuer: origin, token }
}
