"""Create or update, by name, the automations of automations.yaml on the server that PREFECT_API_URL names.

Whom to tell is a notification block of Prefect with the name `privsweep`, of any kind that it knows. One that
posts to an address is made here where PRIVSWEEP_WEBHOOK holds the address.
"""

import os
from pathlib import Path
from typing import Any

import yaml
from prefect.blocks.notifications import CustomWebhookNotificationBlock
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.events.schemas.automations import AutomationCore

FILE = Path(__file__).with_name("automations.yaml")
BLOCK = "privsweep"
NOTIFY = "notify"  # stands in the file for the id of the block


def deploy() -> None:
    """Create or update all automations; those that would notify nobody are left out."""
    if address := os.environ.get("PRIVSWEEP_WEBHOOK"):
        _webhook(address).save(BLOCK, overwrite=True)
    with get_client(sync_client=True) as client:
        block = _block(client)
        for automation in yaml.safe_load(FILE.read_text())["automations"]:
            notifies = [a for a in automation["actions"] if a.get("block_document_id") == NOTIFY]
            if notifies and block is None:
                print(f"{automation['name']}: left out, since no notification block is named {BLOCK}")
                continue
            for action in notifies:
                action["block_document_id"] = block
            print(f"{automation['name']}: {_put(client, automation)}")


def _webhook(address: str) -> CustomWebhookNotificationBlock:
    """Return a block that posts `text`, which is what Slack, Mattermost and many others read."""
    return CustomWebhookNotificationBlock(
        name="privsweep",
        url=address,
        method="POST",
        headers=None,
        cookies=None,
        json_data={"text": "{{subject}}\n{{body}}"},
    )


def _block(client: SyncPrefectClient) -> str | None:
    """Return the id of the notification block, None if there is none."""
    answer = client.request(
        "POST",
        "/block_documents/filter",
        json={
            "block_documents": {"name": {"any_": [BLOCK]}},
            "block_schemas": {"block_capabilities": {"all_": ["notify"]}},
        },
    )
    found = answer.json()
    return str(found[0]["id"]) if found else None


def _put(client: SyncPrefectClient, automation: dict[str, Any]) -> str:
    """Create an automation, or replace the one of its name; return which of them."""
    wanted = AutomationCore.model_validate(automation).model_dump(mode="json", exclude={"owner_resource"})
    same = client.request(
        "POST", "/automations/filter", json={"automations": {"name": {"any_": [automation["name"]]}}}
    ).json()
    if not same:
        client.request("POST", "/automations/", json=wanted)
        return "created"
    client.request("PUT", "/automations/{id}", path_params={"id": same[0]["id"]}, json=wanted)
    return "updated"


if __name__ == "__main__":
    deploy()
