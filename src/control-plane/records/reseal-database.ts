/** Visits every sealed value of a database, so that each can be sealed again. */
import { modules } from '../../modules/forms.ts'
import { resources } from '../resources/index.ts'
import { everyPage } from '../store/every-page.ts'
import type { StoredModule } from '../store/reader.ts'
import type { Writer } from '../store/writer.ts'
import { resealAcmeKeys } from './acme-keys.ts'
import { changeFields, moduleAt, resourceAt } from './sealed-fields.ts'
import { resealLogins } from './sealed-logins.ts'
import { keyFacts } from './server-keys.ts'

/** Returns the new text for a sealed value; `context` says what it belongs to. */
export type Reseal = (sealed: string, context: string) => string

/** How many rows are held in memory at a time. */
const AT_A_TIME = 500

/** Replaces every sealed value; returns the number of rows. */
export async function resealAll(writer: Writer, reseal: Reseal): Promise<number> {
  let facts = 0
  for (const fact of keyFacts) facts += await fact.reseal(writer, reseal)
  return (
    facts +
    (await resealModules(writer, reseal)) +
    (await resealResources(writer, reseal)) +
    (await resealLogins(writer, reseal)) +
    (await resealAcmeKeys(writer, reseal))
  )
}

async function resealModules(writer: Writer, reseal: Reseal): Promise<number> {
  const secrets = new Map(modules.flatMap(({ name, secrets }) => (secrets ? [[name, secrets]] : [])))
  let count = 0
  let after: StoredModule | null = null
  for (;;) {
    const some: StoredModule[] = await writer.modulesNamed([...secrets.keys()], { after, limit: AT_A_TIME })
    for (const { hostId, module, config } of some) {
      const changed = changeFields(secrets.get(module) ?? [], config, moduleAt(hostId, module), onText(reseal))
      await writer.putModule(hostId, module, changed)
    }
    count += some.length
    after = some.at(-1) ?? null
    if (!after) return count
  }
}

async function resealResources(writer: Writer, reseal: Reseal): Promise<number> {
  let count = 0
  for (const { kind, secrets } of resources.filter((resource) => resource.secrets.length > 0)) {
    for await (const some of everyPage(AT_A_TIME, (page) => writer.page({ kind, ...page }))) {
      for (const { id, fields } of some) {
        await writer.replaceFields(id, changeFields(secrets, fields, resourceAt(id), onText(reseal)))
      }
      count += some.length
    }
  }
  return count
}

function onText(reseal: Reseal): (value: unknown, context: string) => string {
  return (value, context) => reseal(String(value), context)
}
