/** Modules between requests and rows: read, checked together, sealed, and opened again. */

import type { Sealer } from '../../lib/secrets/seal.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { moduleConflicts } from '../../modules/forms.ts'
import type { Mention, Module, ModuleConfig } from '../../modules/module.ts'
import { formsOf, type ModuleForm, moduleMentions } from '../../modules/spellings.ts'
import type { Fields, Resource } from '../resources/resource.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Writer } from '../store/writer.ts'
import type { Documents } from './check-documents.ts'
import { checkMentions } from './check-references.ts'
import type { Principal } from './find-caller.ts'
import { checkNesting } from './nesting.ts'
import { moduleAt, openFields, sealFields } from './sealed-fields.ts'
import { holdKey } from './sealing.ts'

/** A module and the configuration to write for it. */
interface ModuleWrite {
  readonly module: Module
  readonly config: ModuleConfig
  /** Prefix of its fields in messages: empty for its own PUT, `policy.` inside a body. */
  readonly at: string
}

/** The caller and the checks, which run outside of any transaction, since they may take seconds. */
interface Checking {
  readonly checks: Pick<Documents, 'readModule'>
  readonly principal: Pick<Principal, 'id'>
}

/** Splits a body that passed its schema into the resource's own fields and its modules. */
export async function splitModules(
  checking: Checking,
  resource: Resource,
  input: Fields,
): Promise<{ own: Record<string, unknown>; modules: ModuleWrite[] }> {
  const own: Record<string, unknown> = { ...input }
  const modules: ModuleWrite[] = []
  const { place } = resource
  if (!place) return { own, modules }
  for (const module of resource.modules) {
    const [form, another] = formsOf(module, place).filter(({ name }) => own[name] !== undefined)
    if (!form) continue
    if (another) throw twice(form, another)
    // The resource's schema holds that of each form, which has checked this value.
    const given = own[form.name] as ModuleConfig
    modules.push(await moduleWrite(checking, resource, { module, form, given, at: `${form.name}.` }))
    delete own[form.name]
  }
  return { own, modules }
}

/** Lets a module check what a schema cannot express. */
export async function moduleWrite(
  { checks, principal }: Checking,
  { place }: Resource,
  { module, form, given, at }: { module: Module; form: ModuleForm; given: ModuleConfig; at: string },
): Promise<ModuleWrite> {
  if (!place) return { module, at, config: given }
  return { module, at, config: await checks.readModule(principal.id, { module, form, given, where: { place, at } }) }
}

function twice(form: ModuleForm, another: ModuleForm): BadValue {
  return new BadValue(
    another.name,
    'value',
    `\`${form.name}\` and \`${another.name}\` are two spellings of one value; send one of them`,
  )
}

/**
 * Refuses modules that would contradict each other once `writes` are done and `without` is removed. Opens only the modules that
 * it has to read, so that a module that cannot be opened can still be replaced or deleted.
 */
export function checkTogether(
  sealer: Sealer,
  resource: Resource,
  before: Pick<StoredResource, 'id' | 'modules'>,
  { writes = [], without }: { writes?: readonly ModuleWrite[]; without?: Module },
): void {
  if (!resource.place) return
  const written = new Map(writes.map(({ module, config }) => [module.name, config]))
  // What is stored was accepted by these modules.
  const after = new Map([...(before.modules as ReadonlyMap<string, ModuleConfig>), ...written])
  if (without) after.delete(without.name)
  moduleConflicts(resource.place, after, ({ name, secrets = [] }, config) =>
    written.has(name) ? config : openFields(sealer, secrets, config, moduleAt(before.id, name)),
  )
}

/** Every resource that `writes` refer to. */
export function mentionsOf({ place }: Resource, writes: readonly ModuleWrite[]): Mention[] {
  if (!place) return []
  return writes.flatMap(({ module, config, at }) =>
    moduleMentions(module, place, config).map((mention) => ({ ...mention, field: at + mention.field })),
  )
}

/** Replaces modules of a stored resource; throws `Refusal` when that would break a rule. */
export async function replaceModules(
  writer: Writer,
  sealer: Sealer,
  resource: Resource,
  before: Pick<StoredResource, 'id' | 'modules'>,
  writes: readonly ModuleWrite[],
): Promise<void> {
  checkTogether(sealer, resource, before, { writes })
  const mentions = mentionsOf(resource, writes)
  await checkMentions(writer, mentions)
  await checkNesting(writer, resource, before.id, mentions)
  await writeModules(writer, sealer, resource, before, writes)
}

/** Writes modules with their references; `modules` are those from before. */
export async function writeModules(
  writer: Writer,
  sealer: Sealer,
  resource: Resource,
  { id, modules }: Pick<StoredResource, 'id' | 'modules'>,
  writes: readonly ModuleWrite[],
): Promise<void> {
  for (const write of writes) {
    const { module, config } = write
    if (module.secrets) await holdKey(writer, sealer)
    await writer.putModule(id, module.name, sealFields(sealer, module.secrets ?? [], config, moduleAt(id, module.name)))
    const ids = mentionsOf(resource, [write]).map((mention) => mention.id)
    await writer.setReferences(id, module.name, ids, !modules.has(module.name))
  }
}

/** The modules of a stored resource with their secrets opened. */
export function openModules(sealer: Sealer, resource: Resource, stored: StoredResource): Map<string, ModuleConfig> {
  const opened = new Map<string, ModuleConfig>()
  for (const module of resource.modules) {
    const config = stored.modules.get(module.name)
    // What is stored was accepted by this module.
    if (!config) continue
    const place = moduleAt(stored.id, module.name)
    opened.set(module.name, openFields(sealer, module.secrets ?? [], config as ModuleConfig, place))
  }
  return opened
}
