import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

test('the outside check applies what docs/migrate.md tells users of Terraform to write', () => {
  const docs = readFileSync('docs/migrate.md', 'utf8')
  const blocks = [...docs.matchAll(/```hcl\n(.*?)```/gs)].map(([, block = '']) => block.trim())
  assert.equal(blocks.length, 2)
  const applied = readFileSync('test/outside/terraform/0.3/main.tf', 'utf8')
  for (const block of blocks) assert.ok(applied.includes(block), block)
})
