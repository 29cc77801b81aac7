/** An identity provider on this machine, built on samlify, whose users log in without a prompt. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Asked, type Facts, type Signing, TestIdp } from '../../../src/modules/saml/testing/test-idp.ts'
import type { Owner } from '../../support/upstream.ts'

export interface RealIdp {
  readonly idp: TestIdp
  readonly metadataUrl: string
  /** Whether it fails all requests. */
  isDown: boolean
  /** What the next answers say instead of the right facts, and how they are signed. */
  facts: Partial<Facts>
  signing: Signing
  /** Changes the next answers after signing. */
  change: (xml: string) => string
  /** The metadata of the requesting route, as served. */
  routeMetadata: string
  readonly asked: Asked[]
}

export async function realIdp(owner: Owner): Promise<RealIdp> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  owner.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // it listens on a port
  const idp = await TestIdp.make(`${origin}/sso`)
  const made: RealIdp = {
    idp,
    metadataUrl: `${origin}/metadata`,
    isDown: false,
    facts: {},
    signing: {},
    change: (xml) => xml,
    routeMetadata: '',
    asked: [],
  }
  const answer = async (target: string): Promise<string> => {
    if (target === '/metadata') return idp.metadata
    const asked = await idp.read(`${origin}${target}`, made.routeMetadata)
    made.asked.push(asked)
    const xml = made.change(await idp.answer(asked, made.facts, made.signing))
    const fields = { SAMLResponse: Buffer.from(xml).toString('base64'), RelayState: asked.relayState }
    const inputs = Object.entries(fields).map(
      ([name, value]) => `<input type="hidden" name="${name}" value="${value}">`,
    )
    return `<form method="post" action="${asked.acs}">${inputs.join('')}</form>`
  }
  server.on('request', (request, response) => {
    if (made.isDown) return void response.writeHead(500).end()
    answer(request.url ?? '').then(
      (text) => response.end(text),
      (error: unknown) => response.writeHead(400).end(String(error)),
    )
  })
  return made
}
