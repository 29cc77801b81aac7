# Every resource of provider 0.8 that Postern serves, as its users write them. The runner applies it twice, with other
# words the second time, and expects an empty plan after each.

terraform {
  required_providers {
    ngrok = { source = "ngrok/ngrok" }
  }
}

# The address and the key come from NGROK_API_BASE_URL and NGROK_API_KEY.
provider "ngrok" {}

variable "words" { type = string }
variable "active" { type = bool }
variable "ssh_public_key" { type = string }
variable "ca_pem" { type = string }
variable "certificate_pem" { type = string }
variable "private_key_pem" {
  type      = string
  sensitive = true
}

resource "ngrok_api_key" "this" {
  description = var.words
  metadata    = jsonencode({ words = var.words })
}

resource "ngrok_service_user" "this" {
  name   = "service ${var.words}"
  active = var.active
}

resource "ngrok_api_key" "of_service" {
  description = var.words
  owner_id    = ngrok_service_user.this.id
}

resource "ngrok_credential" "this" {
  description = var.words
  metadata    = "credential"
  acl         = ["bind:*.example.com", "bind:team=${var.words}"]
}

resource "ngrok_credential" "bare" {}

resource "ngrok_ssh_credential" "this" {
  description = var.words
  acl         = ["bind:ssh.example.com"]
  public_key  = var.ssh_public_key
}

resource "ngrok_ip_policy" "this" {
  description = var.words
  metadata    = "policy"
}

resource "ngrok_ip_policy_rule" "allow" {
  action       = "allow"
  cidr         = "0.0.0.0/0"
  description  = var.words
  ip_policy_id = ngrok_ip_policy.this.id
}

resource "ngrok_ip_policy_rule" "deny" {
  action       = "deny"
  cidr         = var.active ? "2001:db8::/32" : "2001:db8:1::/48"
  ip_policy_id = ngrok_ip_policy.this.id
}

resource "ngrok_ip_restriction" "this" {
  description   = var.words
  type          = "agent"
  enforced      = var.active
  ip_policy_ids = [ngrok_ip_policy.this.id]
}

resource "ngrok_certificate_authority" "this" {
  description = var.words
  ca_pem      = var.ca_pem
}

resource "ngrok_tls_certificate" "this" {
  description     = var.words
  certificate_pem = var.certificate_pem
  private_key_pem = var.private_key_pem
}

resource "ngrok_tcp_address" "this" {
  description = var.words
  region      = "us"
}

resource "ngrok_tcp_address" "bare" {}

resource "ngrok_domain" "this" {
  domain         = "shop.terraform.example.com"
  description    = var.words
  certificate_id = ngrok_tls_certificate.this.id
}

resource "ngrok_domain" "managed" {
  domain      = "*.terraform.example.com"
  description = var.words
  certificate_management_policy = {
    authority        = "letsencrypt"
    private_key_type = var.active ? "ecdsa" : "rsa"
  }
}

resource "ngrok_domain" "bare" {
  domain = "bare.terraform.example.com"
}

resource "ngrok_ssh_certificate_authority" "this" {
  description      = var.words
  private_key_type = "ecdsa"
  elliptic_curve   = "p384"
}

resource "ngrok_ssh_certificate_authority" "bare" {
  private_key_type = "ed25519"
  metadata         = var.words
}

data "ngrok_domain" "read" {
  id = ngrok_domain.this.id
}

data "ngrok_service_user" "read" {
  id = ngrok_service_user.this.id
}

output "read" {
  value = [data.ngrok_domain.read.domain, data.ngrok_service_user.read.name]
}
