/** Every row of contract part 4, and after it the rows of its neighbours, each with a body that names all its fields. */
import { EXAMPLE_ROOT } from './certificates.ts'
import { type ModuleCase, modulePath, moduleCases, type Refs } from './module-table.ts'
import { moduleShapes, pageOf, resourceShapes as shapes } from './resource-shapes.ts'
import type { Shape } from './shapes.ts'
import { newPublicKey, openSshLine } from './ssh-keys.ts'
import { unique, uniqueAddress, uniqueName } from './target.ts'
import type { KindName } from './world.ts'

export interface Row {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  readonly path: string
  readonly status: 200 | 201 | 204
  readonly shape: Shape | null
  /** What `{id}` is one of; null when only an agent can make one. */
  readonly kind: KindName | null
  readonly body?: (given: Given) => Fields
  /** The module to set before, so that it is there to be read or deleted. */
  readonly module?: ModuleCase
}

export interface Given {
  readonly refs: Refs
  readonly ownerId: string
}

type Fields = Readonly<Record<string, unknown>>

const texts = () => ({ description: unique('about'), metadata: unique('{"a":1}') })
const policy = { enabled: true, inbound: [{ name: 'n', expressions: ['true'], actions: [{ type: 'deny', config: {} }] }] }
const key = () => openSshLine(newPublicKey('ed25519'))

/** The five operations of a resource, with the bodies of create and update. */
function five(
  kind: KindName,
  path: string,
  page: Shape | null,
  { made, one }: { made: Shape; one: Shape },
  { create, update }: { create: Row['body'] & {}; update: Row['body'] & {} },
): Row[] {
  return [
    { method: 'POST', path, status: 201, shape: made, kind, body: create },
    ...(page ? [{ method: 'GET', path, status: 200, shape: page, kind } as const] : []),
    { method: 'GET', path: `${path}/{id}`, status: 200, shape: one, kind },
    { method: 'PATCH', path: `${path}/{id}`, status: 200, shape: one, kind, body: update },
    { method: 'DELETE', path: `${path}/{id}`, status: 204, shape: null, kind },
  ]
}
